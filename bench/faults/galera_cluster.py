"""Galera cluster of three MariaDB nodes on loopback."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

from bench.faults.installation import NotInstalled
from tests.acceptance.database_server import DatabaseServer
from tests.support.databases import migrate, temporary_directory

#: where distributions put the library of Galera 4
PROVIDERS = (
    "/usr/lib/galera/libgalera_smm.so",
    "/usr/lib64/galera-4/libgalera_smm.so",
    "/usr/lib/galera4/libgalera_smm.so",
)
NODES = 3


@contextlib.contextmanager
def galera_cluster() -> Iterator[tuple[list[DatabaseServer], list[str]]]:
    """Start the nodes; yield them with the URLs of a migrated database, one for each node."""
    provider = next((path for path in PROVIDERS if Path(path).exists()), None)
    if provider is None:
        raise NotInstalled("Galera is not installed (Debian: apt install galera-4)")
    ports = free_ports(3 * NODES)
    servers: list[DatabaseServer] = []
    with temporary_directory() as folder, contextlib.ExitStack() as stack:
        for number in range(NODES):
            made = DatabaseServer(
                "mariadb", folder / f"node{number + 1}", options_of(number, ports, provider)
            )
            stack.callback(made.stop)
            servers.append(made)
        urls = [servers[0].server.create_database("xxl_job")]
        migrate(urls[0])
        yield servers, urls + [made.server.url.format("xxl_job") for made in servers[1:]]


def options_of(number: int, ports: list[int], provider: str) -> list[str]:
    """Return the options of a node; the first begins the cluster, the last gives its data to others."""
    group, shift, transfer = ports[number], ports[NODES + number], ports[2 * NODES + number]
    members = ",".join(f"127.0.0.1:{port}" for port in ports[:NODES])
    settings = (
        f"gmcast.listen_addr=tcp://127.0.0.1:{group}",
        f"ist.recv_addr=127.0.0.1:{shift}",
        "gcache.size=32M",
        "pc.recovery=false",
    )
    return [
        "--wsrep-on=ON",
        f"--wsrep-provider={provider}",
        f"--wsrep-provider-options={';'.join(settings)}",
        f"--wsrep-cluster-address=gcomm://{members if number else ''}",
        f"--wsrep-node-name=node{number + 1}",
        f"--wsrep-node-address=127.0.0.1:{group}",
        f"--wsrep-sst-receive-address=127.0.0.1:{transfer}",
        "--wsrep-sst-method=rsync",
        f"--wsrep-sst-donor=node{NODES},",
        "--binlog-format=ROW",
        "--innodb-autoinc-lock-mode=2",
    ]


def free_ports(count: int) -> list[int]:
    """Return ports that are free now."""
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
