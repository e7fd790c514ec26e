"""Site of the storm: a cluster with executors behind proxies, and how to start each program again."""

from collections.abc import Callable
from dataclasses import dataclass, field

from bench.faults.proxy import Proxy
from tests.acceptance.cluster import TOKEN, Cluster
from tests.acceptance.programs import Program, free_port

OWN, STOCK = "own-client", "stock-like"
CLIENTS = ("client-1", "client-2")


@dataclass
class Site:
    """A cluster with executors behind proxies."""

    cluster: Cluster
    seed: int
    #: executor groups: our own client's, and one that forgets
    groups: tuple[str, ...] = (OWN, STOCK)
    proxies: dict[str, Proxy] = field(default_factory=dict)
    starters: dict[str, Callable[[], Program]] = field(default_factory=dict)

    def start(self, nodes: int) -> None:
        """Start everything without faults; return when all executors are registered."""
        self.cluster.await_console(self.cluster.start_console(wait=False))
        self.starters["console"] = lambda: self.cluster.start_console(wait=False)
        for number in range(1, nodes + 1):
            name = f"workers-{number}"
            self.starters[name] = lambda name=name: self.cluster.start(
                name, "-m", "workers", XXL_JOB_NODE_NAME=name
            )  # type: ignore[misc]
            self.cluster.start_workers(name)
        self._add_proxy("admin", self.cluster.port)
        for name in CLIENTS:
            self._add_executor(name, lambda name, port: self._start_client(name, port))
        if STOCK in self.groups:
            self._add_executor(STOCK, lambda name, port: self._start_stock(name, port))

    def _add_proxy(self, name: str, target: int) -> None:
        self.proxies[name] = Proxy(free_port(), target, seed=self.seed + len(self.proxies))
        self.proxies[name].start()

    def _add_executor(self, name: str, start: Callable[[str, int], Program]) -> None:
        port = free_port()
        self._add_proxy(name, port)
        self.starters[name] = lambda: start(name, port)
        self.starters[name]()

    @property
    def admin(self) -> str:
        return f"http://127.0.0.1:{self.proxies['admin'].port}/xxl-job-admin"

    def _address(self, name: str) -> str:
        return f"http://127.0.0.1:{self.proxies[name].port}/"

    def _start_client(self, name: str, port: int) -> Program:
        journal = self.cluster.folder / f"{name}.jsonl"
        self.cluster.journals[name] = journal
        where = [
            "--admin",
            self.admin,
            "--appname",
            OWN,
            "--port",
            str(port),
            "--address",
            self._address(name),
        ]
        home = {"XXL_JOB_HOME": str(self.cluster.folder / f"home-{name}"), "FAULTS_JOURNAL": str(journal)}
        return self.cluster.start(name, "-m", "executor_client", "bench.faults.handlers", *where, **home)

    def _start_stock(self, name: str, port: int) -> Program:
        journal = self.cluster.folder / f"{name}.jsonl"
        self.cluster.journals[name] = journal
        where = [
            "--admin",
            self.admin,
            "--token",
            TOKEN,
            "--appname",
            STOCK,
            "--port",
            str(port),
            "--address",
            self._address(name),
        ]
        return self.cluster.start(
            name, "bench/faults/recording_executor.py", *where, "--journal", str(journal)
        )

    def spoil(self, share: float) -> None:
        for proxy in self.proxies.values():
            proxy.share = share

    def stop(self) -> None:
        self.cluster.programs.stop_all()
        for proxy in self.proxies.values():
            proxy.stop()
