"""``python -m workers``: the supervisor and its children, in the foreground."""

import sys

from sqlalchemy.exc import DBAPIError

from app.clock import now_ms
from app.database.engine import bind_engine, unbind_engine
from app.database.faults import not_configured
from app.database.moves import follow
from app.database.opening import check_database
from app.domain.enums import NodeKind
from app.errors import NotConfigured
from app.runtime.logging import set_up_logging
from app.runtime.program import raise_file_limit, read_arguments
from app.services.installation import nodes
from app.services.installation.preconditions import check_schema, check_settings
from app.settings.config import Config
from app.settings.home import keep_new_files_private
from workers.processes.supervisor import Supervisor

EXIT_NOT_CONFIGURED = 2
#: open files of each child, most for requests to executors that do not answer; macOS allows no more
FILES = 10_240


def main() -> int:
    """Check settings, database and schema, then run; print one line and return 2 where a check fails."""
    env_file = read_arguments("xxl-job-workers", "Run the workers in the foreground until SIGTERM or SIGINT.")
    keep_new_files_private()
    raise_file_limit(FILES)  # The children inherit it.
    try:
        config = Config.from_env(env_file=env_file)
        set_up_logging(config.log_level, config.log_format)
        check_settings(config)
        config = follow(config)
        check_database(config)
        engine = bind_engine(config)
        check_schema(engine)
        nodes.start(config, NodeKind.WORKERS, now_ms=now_ms())
        unbind_engine()
    except NotConfigured as exc:
        return _give_up(exc)
    except DBAPIError as exc:
        return _give_up(not_configured(exc))
    return Supervisor(config).run()


def _give_up(error: Exception) -> int:
    print(f"workers: {error}", file=sys.stderr)
    return EXIT_NOT_CONFIGURED


if __name__ == "__main__":
    sys.exit(main())
