"""Helpers of the tests of executor client execution, for all that need them."""

from typing import Any

#: a program that needs a moment to end
ROLLS_BACK = """trap "sleep 0.5; echo rolled back; exit" TERM; echo ready; while :; do sleep 0.05; done"""


#: a program with a background process that prints after its end
PRINTS_LATER = (
    "(until [ -e {folder}/gate ]; do sleep 0.05; done; echo late; touch {folder}/ended) & echo started"
)


def script(language: str, source: str, **changes: Any) -> dict[str, Any]:
    return {"glueType": f"GLUE_{language}", "glueSource": source, **changes}
