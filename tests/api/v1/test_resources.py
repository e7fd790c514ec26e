"""Resources by path and method: a command on the server imports only those of the paths that it calls."""

from collections.abc import Iterable

from app.api.v1.endpoint import Resource
from app.api.v1.resources import all_resources, resources_at


def methods_at(path: str, resources: Iterable[Resource]) -> set[str]:
    return {
        operation.method
        for resource in resources
        for operation in resource.operations
        if operation.path == path
    }


def test_at_each_path_are_all_its_operations() -> None:
    every = all_resources()
    operations = [operation for resource in every for operation in resource.operations]
    missing = [
        (operation.method, operation.path)
        for operation in operations
        if operation.method not in methods_at(operation.path, resources_at(operation.path, operation.method))
    ]
    assert missing == []
    assert (resources_at("/nothing", "GET"), resources_at("/", "GET")) == ((), ())
    assert not methods_at("/jobs", resources_at("/jobs", "GET")) - {"GET"}
