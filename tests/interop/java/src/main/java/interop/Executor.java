package interop;

import com.xxl.job.core.context.XxlJobHelper;
import com.xxl.job.core.executor.impl.XxlJobSimpleExecutor;
import com.xxl.job.core.handler.annotation.XxlJob;

import java.util.List;
import java.util.concurrent.TimeUnit;

/** Six handlers on xxl-job-core: Executor ADMIN TOKEN APPNAME PORT FOLDER. */
public class Executor {

    @XxlJob("ok")
    public void ok() {
        XxlJobHelper.log("hello {}", XxlJobHelper.getJobParam());
        XxlJobHelper.handleSuccess("done");
    }

    @XxlJob("fail")
    public void fail() {
        XxlJobHelper.log("about to fail");
        throw new IllegalStateException("told to fail");
    }

    @XxlJob("sleep")
    public void sleep() throws InterruptedException {
        XxlJobHelper.log("asleep for {} s", XxlJobHelper.getJobParam());
        TimeUnit.MILLISECONDS.sleep((long) (Double.parseDouble(XxlJobHelper.getJobParam()) * 1000));
    }

    @XxlJob("shard")
    public void shard() {
        String text = "shard " + XxlJobHelper.getShardIndex() + " of " + XxlJobHelper.getShardTotal();
        XxlJobHelper.log(text);
        XxlJobHelper.handleSuccess(text);
    }

    @XxlJob("lines")
    public void lines() {
        for (int number = 1; number <= 200; number++) {
            XxlJobHelper.log("line {} of 200", number);
        }
    }

    @XxlJob("echo")
    public void echo() {
        XxlJobHelper.handleSuccess(XxlJobHelper.getJobParam());
    }

    public static void main(String[] words) throws Exception {
        XxlJobSimpleExecutor executor = new XxlJobSimpleExecutor();
        executor.setAdminAddresses(words[0]);
        executor.setAccessToken(words[1]);
        executor.setAppname(words[2]);
        executor.setIp("127.0.0.1");
        executor.setPort(Integer.parseInt(words[3]));
        executor.setLogPath(words[4] + "/logs");
        executor.setLogRetentionDays(7);
        executor.setXxlJobBeanList(List.of(new Executor()));
        executor.start();
        Runtime.getRuntime().addShutdownHook(new Thread(executor::destroy));
        Thread.currentThread().join();
    }
}
