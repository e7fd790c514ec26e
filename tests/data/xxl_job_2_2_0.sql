-- A database of XXL-JOB 2.2.0: as of 2.4.1, but every job has a cron (job_cron) instead of a schedule type, group and report have no
-- update_time, and address_list is shorter. The rows are made up. Written from the description of the schema; statements are separated
-- by a semicolon at the end of a line.

CREATE TABLE xxl_job_info (
  id int(11) NOT NULL AUTO_INCREMENT,
  job_group int(11) NOT NULL,
  job_cron varchar(128) NOT NULL,
  job_desc varchar(255) NOT NULL,
  add_time datetime DEFAULT NULL,
  update_time datetime DEFAULT NULL,
  author varchar(64) DEFAULT NULL,
  alarm_email varchar(255) DEFAULT NULL,
  executor_route_strategy varchar(50) DEFAULT NULL,
  executor_handler varchar(255) DEFAULT NULL,
  executor_param varchar(512) DEFAULT NULL,
  executor_block_strategy varchar(50) DEFAULT NULL,
  executor_timeout int(11) NOT NULL DEFAULT 0,
  executor_fail_retry_count int(11) NOT NULL DEFAULT 0,
  glue_type varchar(50) NOT NULL,
  glue_source mediumtext,
  glue_remark varchar(128) DEFAULT NULL,
  glue_updatetime datetime DEFAULT NULL,
  child_jobid varchar(255) DEFAULT NULL,
  trigger_status tinyint(4) NOT NULL DEFAULT 0,
  trigger_last_time bigint(13) NOT NULL DEFAULT 0,
  trigger_next_time bigint(13) NOT NULL DEFAULT 0,
  PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE xxl_job_log (
  id bigint(20) NOT NULL AUTO_INCREMENT,
  job_group int(11) NOT NULL,
  job_id int(11) NOT NULL,
  executor_address varchar(255) DEFAULT NULL,
  executor_handler varchar(255) DEFAULT NULL,
  executor_param varchar(512) DEFAULT NULL,
  executor_sharding_param varchar(20) DEFAULT NULL,
  executor_fail_retry_count int(11) NOT NULL DEFAULT 0,
  trigger_time datetime DEFAULT NULL,
  trigger_code int(11) NOT NULL,
  trigger_msg text,
  handle_time datetime DEFAULT NULL,
  handle_code int(11) NOT NULL,
  handle_msg text,
  alarm_status tinyint(4) NOT NULL DEFAULT 0,
  PRIMARY KEY (id),
  KEY I_trigger_time (trigger_time),
  KEY I_handle_code (handle_code)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE xxl_job_log_report (
  id int(11) NOT NULL AUTO_INCREMENT,
  trigger_day datetime DEFAULT NULL,
  running_count int(11) NOT NULL DEFAULT 0,
  suc_count int(11) NOT NULL DEFAULT 0,
  fail_count int(11) NOT NULL DEFAULT 0,
  PRIMARY KEY (id),
  UNIQUE KEY i_trigger_day (trigger_day)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE xxl_job_logglue (
  id int(11) NOT NULL AUTO_INCREMENT,
  job_id int(11) NOT NULL,
  glue_type varchar(50) DEFAULT NULL,
  glue_source mediumtext,
  glue_remark varchar(128) NOT NULL,
  add_time datetime DEFAULT NULL,
  update_time datetime DEFAULT NULL,
  PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE xxl_job_registry (
  id int(11) NOT NULL AUTO_INCREMENT,
  registry_group varchar(50) NOT NULL,
  registry_key varchar(255) NOT NULL,
  registry_value varchar(255) NOT NULL,
  update_time datetime DEFAULT NULL,
  PRIMARY KEY (id),
  KEY i_g_k_v (registry_group, registry_key, registry_value)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE xxl_job_group (
  id int(11) NOT NULL AUTO_INCREMENT,
  app_name varchar(64) NOT NULL,
  title varchar(12) NOT NULL,
  address_type tinyint(4) NOT NULL DEFAULT 0,
  address_list varchar(512) DEFAULT NULL,
  PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE xxl_job_user (
  id int(11) NOT NULL AUTO_INCREMENT,
  username varchar(50) NOT NULL,
  password varchar(50) NOT NULL,
  role tinyint(4) NOT NULL,
  permission varchar(255) DEFAULT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY i_username (username)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE xxl_job_lock (
  lock_name varchar(50) NOT NULL,
  PRIMARY KEY (lock_name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

INSERT INTO xxl_job_lock (lock_name) VALUES ('schedule_lock');

-- the passwords are "acceptance-password" and "nightly-operator"
INSERT INTO xxl_job_user (id, username, password, role, permission) VALUES
  (1, 'admin', '94fcfdeb98c5e6d0fde7e4afe23f3b35', 1, NULL),
  (2, 'operator', '58f5b474088ff4ac1f98890f1073b5c5', 0, '2');

INSERT INTO xxl_job_group (id, app_name, title, address_type, address_list) VALUES
  (1, 'xxl-job-executor-sample', 'Sample', 0, NULL),
  (2, 'recorder', '夜间任务', 0, 'http://127.0.0.1:1/');

INSERT INTO xxl_job_registry (registry_group, registry_key, registry_value, update_time) VALUES
  ('EXECUTOR', 'recorder', 'http://127.0.0.1:1/', '2020-05-01 10:00:00');

-- the last one was made past the console, without a cron
INSERT INTO xxl_job_info (id, job_group, job_cron, job_desc, add_time, update_time, author, alarm_email, executor_route_strategy,
    executor_handler, executor_param, executor_block_strategy, glue_type, glue_source, glue_remark, glue_updatetime, child_jobid,
    trigger_status, trigger_last_time, trigger_next_time) VALUES
  (7, 2, '* * * * * ?', 'every second', '2020-01-01 08:00:00', '2020-05-01 09:00:00', 'ann', 'ann@example.org', 'ROUND',
    'ok', 'from 2.2.0', 'SERIAL_EXECUTION', 'BEAN', '', NULL, '2020-01-01 08:00:00', '', 1, 1588298399000, 1588298400000),
  (8, 2, '0 0 3 * * ?', 'a script', '2020-01-01 08:00:00', '2020-05-01 09:00:00', 'ann', NULL, 'FIRST', NULL, NULL,
    'DISCARD_LATER', 'GLUE_SHELL', '#!/bin/bash\necho hello\n', 'first version', '2020-01-01 08:00:00', NULL, 0, 0, 0),
  (9, 2, '', 'without a cron', '2020-01-01 08:00:00', '2020-05-01 09:00:00', 'ann', NULL, 'FIRST', 'ok', NULL,
    'COVER_EARLY', 'BEAN', NULL, NULL, NULL, NULL, 0, 0, 0);

INSERT INTO xxl_job_log (id, job_group, job_id, executor_address, executor_handler, executor_param, executor_fail_retry_count, trigger_time,
    trigger_code, trigger_msg, handle_time, handle_code, handle_msg, alarm_status) VALUES
  (101, 2, 7, 'http://127.0.0.1:1/', 'ok', 'from 2.2.0', 0, '2020-05-01 09:59:57', 200, '任务触发类型：Cron触发<br>',
    '2020-05-01 09:59:57', 200, '', 0);

INSERT INTO xxl_job_log_report (trigger_day, running_count, suc_count, fail_count) VALUES ('2020-05-01 00:00:00', 0, 1, 0);
