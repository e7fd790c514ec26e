"""Static files: named by their content and kept, in every version; answers are compressed."""

import gzip
import re
from pathlib import Path
from urllib.parse import urljoin

import pytest
from flask import Response, url_for

from app.console.web import bootstrap, icons
from app.console.web.compression import LEAST_BYTES
from app.console.web.current import mask_token, unmask_token
from tests.console.pages import token_of
from tests.support.console import CONTEXT, Console, add_group, add_job

GZIP = {"Accept-Encoding": "gzip, br"}
FOR_EVER = "public, max-age=31536000, immutable"


def address_of(console: Console, filename: str) -> str:
    with console.app.test_request_context("/"):
        return url_for("static", filename=filename)


def test_an_address_contains_the_hash_of_the_file(admin: Console) -> None:
    address = address_of(admin, "js/app.js")
    assert re.fullmatch(r"/static/js/app\.[0-9a-f]{12}\.js", address)
    assert f'src="{CONTEXT}{address}"' in admin.get("/help").text
    answer = admin.get(address, headers=GZIP)
    assert answer.headers["Cache-Control"] == FOR_EVER
    assert answer.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(answer.data) == admin.get(address).data


def test_scripts_import_each_other_by_names_with_hashes(admin: Console) -> None:
    waiting = [address_of(admin, f"js/{name}.js") for name in ("glue-editor", "glue-run", "app")]
    addresses: set[str] = set()
    while waiting:
        address = waiting.pop()
        addresses.add(address)
        answer = admin.get(address)
        assert (answer.status_code, answer.headers["Cache-Control"]) == (200, FOR_EVER), address
        if "/vendor/" not in address:
            waiting += [urljoin(address, name) for name in re.findall(r'"(\.[^"]+\.js)"', answer.text)]
    names = {re.sub(r"\.[0-9a-f]{12}\.", ".", address.rpartition("/")[2]) for address in addresses}
    assert {"log-levels.js", "parameters.js", "copy.js", "index.js"} <= names


def test_comments_of_scripts_are_left_out_but_their_lines_stay(admin: Console, tmp_path: Path) -> None:
    admin.app.static_folder = str(tmp_path)
    (tmp_path / "js").mkdir()
    (tmp_path / "js/b.js").write_text("export const b = 1;")
    (tmp_path / "js/a.js").write_text(
        '/* As\n   from "./c.js". */\nimport { b } from "./b.js";\n  /* one */\nf("/*", 1 /* two */);\n'
    )
    script = re.sub(r"\.[0-9a-f]{12}\.", ".", admin.get(address_of(admin, "js/a.js")).text)
    assert script == '\n\nimport { b } from "./b.js";\n\nf("/*", 1 /* two */);\n'


def test_a_change_of_an_imported_script_changes_the_name_of_the_importing_one(
    admin: Console, tmp_path: Path
) -> None:
    admin.app.static_folder = str(tmp_path)
    (tmp_path / "js").mkdir()
    (tmp_path / "js/a.js").write_text('import { b } from "./b.js";')
    (tmp_path / "js/b.js").write_text("export const b = 1;")
    before = address_of(admin, "js/a.js")
    (tmp_path / "js/b.js").write_text("export const b = 22;")
    assert address_of(admin, "js/a.js") != before


@pytest.mark.parametrize("name", ["js/app.js", "js/app.000000000000.js"], ids=["no hash", "another version"])
def test_other_names_of_a_file_are_checked_each_time(admin: Console, name: str) -> None:
    answer = admin.get(f"/static/{name}")
    assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "no-cache")
    again = admin.get(f"/static/{name}", headers={"If-None-Match": answer.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")


def test_a_changed_file_gets_another_address(admin: Console, tmp_path: Path) -> None:
    admin.app.static_folder = str(tmp_path)
    (tmp_path / "a.css").write_text("p {}")
    before = address_of(admin, "a.css")
    (tmp_path / "a.css").write_text("p { color: red }")
    assert address_of(admin, "a.css") != before
    assert admin.get(before).data == b"p { color: red }"


@pytest.mark.parametrize(
    "name", ["no-such.css", "../config.py", "js", "", "js/%00.js", "css/app.0.css", "vendor/../../config.py"]
)
def test_nothing_else_is_served(admin: Console, name: str) -> None:
    assert admin.get(f"/static/{name}").status_code == 404


@pytest.mark.parametrize(
    ("sheet", "reduced"),
    [
        (".btn{a:b}.modal{c:d}", ".btn{a:b}"),
        (".btn,.modal .btn{a:b}", ".btn{a:b}"),
        (".btn-danger{a:b}.badge{c:d}", ".btn-danger{a:b}"),
        ("body,[data-x]{a:b}", "body,[data-x]{a:b}"),
        ("@media (min-width:9px){.btn{a:b}.modal{c:d}}", "@media (min-width:9px){.btn{a:b}}"),
        ("@media print{.modal{c:d}}", ""),
        ("@keyframes x{0%{a:b}}", "@keyframes x{0%{a:b}}"),
        (".btn:not(.modal,.x){a:b}.modal:not(.btn){a:b}", ".btn:not(.modal,.x){a:b}"),
        ('@charset "UTF-8";/*! Bootstrap */.btn{content:"}"}', '.btn{content:"}"}'),
    ],
)
def test_rules_for_classes_that_no_page_has_are_left_out(sheet: str, reduced: str) -> None:
    assert bootstrap.reduce_sheet(sheet, {"btn", "btn-", "other"}) == reduced


def test_every_icon_named_in_a_page_has_its_rule() -> None:
    rules = set(re.findall(r"\.bi-([a-z0-9-]+)\{", icons.style_sheet().decode()))
    assert {"play-fill", "star", "star-fill", "chevron-up"} <= rules
    texts = (path.read_text(encoding="utf-8") for path in icons.APP.glob("templates/**/*.html"))
    assert set(re.findall(r"\bicon\('([a-z0-9-]+)'", "".join(texts))) <= rules


def test_pages_are_compressed_for_browsers_that_can_read_it(admin: Console) -> None:
    add_job(add_group())
    packed = admin.get("/jobinfo", headers=GZIP)
    assert packed.headers["Content-Encoding"] == "gzip"
    assert int(packed.headers["Content-Length"]) == len(packed.data)
    assert b"</html>" in gzip.decompress(packed.data)
    for accepted in ("", "gzip;q=0", "br"):
        plain = admin.get("/jobinfo", headers={"Accept-Encoding": accepted})
        assert "Content-Encoding" not in plain.headers
        assert plain.headers["Vary"] == "Accept-Encoding"


@pytest.mark.parametrize(
    ("body", "mimetype", "is_packed"),
    [
        ("x" * LEAST_BYTES, "application/json", True),
        ("x" * (LEAST_BYTES - 1), "application/json", False),
        ("x" * LEAST_BYTES, "image/png", False),
        (iter(["x" * LEAST_BYTES]), "text/plain", False),
    ],
    ids=["long", "short", "picture", "stream"],
)
def test_what_is_compressed(admin: Console, body: object, mimetype: str, is_packed: bool) -> None:
    with admin.app.test_request_context("/", headers=GZIP):
        answer = admin.app.process_response(Response(body, mimetype=mimetype))  # type: ignore[arg-type]
        assert ("Content-Encoding" in answer.headers) is is_packed
        assert answer.is_streamed is not isinstance(body, str)


def test_the_token_of_the_forms_looks_different_in_each_response(admin: Console) -> None:
    first, second = token_of(admin), token_of(admin)
    assert first != second
    assert unmask_token(first) == unmask_token(second)


@pytest.mark.parametrize("given", ["", "0", "zz" * 64, "00" * 63, "00" * 65, "é" * 64])
def test_what_is_no_masked_token_is_empty(given: str) -> None:
    assert unmask_token(given) == ""
    assert unmask_token(mask_token("01" * 32, b"\xff" * 32)) == "01" * 32
