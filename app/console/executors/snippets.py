"""Programs to copy that run as an executor, in several languages, with the values of this console quoted."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import NamedTuple

#: port of the example; the demo executor of ``make run`` has the client's default, 9999
PORT = 9998
HANDLER = "demoJobHandler"
#: stands for a token that the reader may not see, or has not asked for
TOKEN_GAP = "paste-the-access-token-here"
#: distribution of the Python client
CLIENT = "duetime-executor"

_JAVA_DEPENDENCY = """<dependency>
  <groupId>com.xuxueli</groupId>
  <artifactId>xxl-job-core</artifactId>
  <version>2.4.1</version>
</dependency>"""
_JAVA_PROGRAM = """import com.xxl.job.core.context.XxlJobHelper;
import com.xxl.job.core.executor.impl.XxlJobSpringExecutor;
import com.xxl.job.core.handler.annotation.XxlJob;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.stereotype.Component;

@Configuration
class JobConfig {
    @Bean
    XxlJobSpringExecutor executor(
            @Value("${xxl.job.admin.addresses}") String admin,
            @Value("${xxl.job.accessToken}") String token,
            @Value("${xxl.job.executor.appname}") String appname,
            @Value("${xxl.job.executor.port}") int port,
            @Value("${xxl.job.executor.logpath}") String logs) {
        XxlJobSpringExecutor executor = new XxlJobSpringExecutor();
        executor.setAdminAddresses(admin);
        executor.setAccessToken(token);
        executor.setAppname(appname);
        executor.setPort(port);
        executor.setLogPath(logs);
        return executor;
    }
}

@Component
class Jobs {
    @XxlJob("demoJobHandler")
    public void demo() {
        XxlJobHelper.log("hello, the parameter is {}", XxlJobHelper.getJobParam());
    }
}"""


class Block(NamedTuple):
    """Text to copy: a file with its name, or commands for a shell (empty name)."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Target:
    """Settings of an executor."""

    console_url: str
    app_name: str
    #: access token, shown only on request
    token: str = ""
    #: file with the token, if the executor can only be on the console's host
    token_file: str = ""
    #: what pip installs as the Python client: its name, or a folder on the console's host
    client: str = CLIENT

    @property
    def export(self) -> str:
        """Command that sets the token."""
        if self.token or not self.token_file:
            return f"export XXL_JOB_ACCESS_TOKEN={quote(self.token or TOKEN_GAP)}"
        return f'export XXL_JOB_ACCESS_TOKEN="$(cat {quote(self.token_file)})"'

    @property
    def has_token(self) -> bool:
        """Whether the commands work as they are."""
        return bool(self.token or self.token_file)


def python(target: Target) -> Sequence[Block]:
    """Return a program with this project's client."""
    program = f'''from executor_client import context, job


@job("{HANDLER}")
def demo() -> None:
    context.log("hello, the parameter is %s", context.param)
'''
    commands = [
        "mkdir -p my-app && cd my-app",
        "python3 -m venv venv && . venv/bin/activate",
        f"pip install {quote(target.client)}",
        f"cat > jobs.py <<'END'\n{program}END",
        target.export,
        f"duetime-executor jobs --admin {quote(target.console_url)}"
        f" --appname {quote(target.app_name)} --port {PORT}",
    ]
    return [Block("", "\n".join(commands))]


def java(target: Target) -> Sequence[Block]:
    """Return the parts of a Spring Boot program with XXL-JOB's client."""
    properties = f"""xxl.job.admin.addresses={target.console_url}
xxl.job.accessToken=${{XXL_JOB_ACCESS_TOKEN}}
xxl.job.executor.appname={target.app_name}
xxl.job.executor.port={PORT}
xxl.job.executor.logpath=logs/xxl-job"""
    return [
        Block("pom.xml", _JAVA_DEPENDENCY),
        Block("application.properties", properties),
        Block("JobConfig.java", _JAVA_PROGRAM),
        Block("", f"{target.export}\nmvn spring-boot:run"),
    ]


def go(target: Target) -> Sequence[Block]:
    """Return a program with the client xxl-job-executor-go."""
    program = f"""package main

import (
	"context"
	"log"
	"os"

	xxl "github.com/xxl-job/xxl-job-executor-go"
)

func main() {{
	executor := xxl.NewExecutor(
		xxl.ServerAddr({_text(target.console_url)}),
		xxl.AccessToken(os.Getenv("XXL_JOB_ACCESS_TOKEN")),
		xxl.RegistryKey({_text(target.app_name)}),
		xxl.ExecutorPort("{PORT}"),
	)
	executor.Init()
	executor.RegTask("{HANDLER}", func(_ context.Context, run *xxl.RunReq) string {{
		return "hello, the parameter is " + run.ExecutorParams
	}})
	log.Fatal(executor.Run())
}}"""
    commands = "go mod init my-app && go get github.com/xxl-job/xxl-job-executor-go@v1.2.0"
    return [Block("main.go", program), Block("", f"{commands}\n{target.export}\ngo run .")]


def node(target: Target) -> Sequence[Block]:
    """Return a program with the npm package xxl-job."""
    program = f"""import express from 'express'
import {{ createXxlJobExecutor }} from 'xxl-job'

const app = express()
app.use(express.json())
app.listen({PORT}, '127.0.0.1', () => {{
  createXxlJobExecutor({{
    app,
    jobHandlers: new Map([['{HANDLER}', async (logger, _request, param) => {{
      logger.info(`hello, the parameter is ${{param}}`)
    }}]]),
    accessToken: process.env.XXL_JOB_ACCESS_TOKEN,
    baseUrl: 'http://127.0.0.1:{PORT}',
    executorKey: {_text(target.app_name)},
    scheduleCenterUrl: {_text(target.console_url)},
    logStorage: 'local',
  }}).initialization()
}})"""
    commands = f"npm install express@4 xxl-job@0.1.7\n{target.export}\nnode executor.mjs"
    return [Block("executor.mjs", program), Block("", commands)]


def http(target: Target) -> Sequence[Block]:
    """Return the registration as plain HTTP, for programs without a client."""
    body = {
        "registryGroup": "EXECUTOR",
        "registryKey": target.app_name,
        "registryValue": f"http://127.0.0.1:{PORT}/",
    }
    command = (
        f"curl {quote(target.console_url + '/api/registry')} -H 'Content-Type: application/json' \\\n"
        f'  -H "XXL-JOB-ACCESS-TOKEN: $XXL_JOB_ACCESS_TOKEN" \\\n'
        f"  -d {quote(json.dumps(body))}"
    )
    return [Block("", f"{target.export}\n{command}")]


def _text(value: str) -> str:
    """Return a text literal, valid in Go and JavaScript."""
    return json.dumps(value)


#: language in the URL -> title and function that returns the blocks
LANGUAGES: dict[str, tuple[str, Callable[[Target], Sequence[Block]]]] = {
    "python": ("Python", python),
    "java": ("Java (Spring Boot)", java),
    "go": ("Go", go),
    "node": ("Node.js", node),
    "http": ("HTTP", http),
}
