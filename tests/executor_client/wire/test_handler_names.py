"""Handler names: which one is suggested for a mistyped one."""

from executor_client.wire.handler_names import NAMES_MAX, nearest_name

MANY = [f"job{number}" for number in range(NAMES_MAX)]


def test_the_name_that_differs_least_is_suggested() -> None:
    assert nearest_name("close_orders", ["closeOrder", "openOrders"]) == "closeOrder"
    assert nearest_name("closeOrders", ["mail"]) == ""


def test_of_very_many_names_the_first_are_compared_and_equal_ones_always_found() -> None:
    """Comparing tens of thousands, which a hostile executor can announce, would take seconds."""
    assert nearest_name("close-orders", [*MANY, "closeOrders"]) == "closeOrders"
    assert nearest_name("closeOrder", [*MANY, "closeOrders"]) == ""
    assert nearest_name("closeOrder", ["closeOrders", *MANY]) == "closeOrders"
