"""Resources by path: a command on the server imports only those of the paths that it calls."""

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
    paths = {operation.path for resource in every for operation in resource.operations}
    found = {path: methods_at(path, resources_at(path)) for path in paths}
    assert found == {path: methods_at(path, every) for path in paths}
    assert (resources_at("/nothing"), resources_at("/")) == ((), ())
