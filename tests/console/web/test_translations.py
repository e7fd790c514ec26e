"""Catalogues: every text of the program, translated, with the same parameters, compiled."""

import ast
import re
from io import BytesIO
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.extract import DEFAULT_KEYWORDS, extract_from_dir
from babel.messages.mofile import read_mo
from babel.messages.pofile import read_po

APP = Path(__file__).resolve().parents[3] / "app"
LOCALES = ("zh_Hans_CN", "zh_Hant_TW")
METHODS = [("**.py", "python"), ("templates/**.html", "jinja2")]
KEYWORDS = {**DEFAULT_KEYWORDS, "_l": None, "lazy_gettext": None}
#: words for which the catalogue has another one: 逾時, 線上, 運行模式, 執行, 變更歷史, 調度日誌, 週
OTHER_WORDS = {
    "zh_Hans_CN": re.compile("[的该]运行(?!模式)|运行[、将都]|审计|变更记录|执行记录|调度记录|星期"),
    "zh_Hant_TW": re.compile("超時|在線(?!上)|上線|執行模式|稽核|變更記錄|包含檢視|執行記錄|調度記錄|星期"),
}
PARAMETER = re.compile(r"%\(\w+\)[sd]")
CHINESE = "[\u4e00-\u9fff]"
#: parameters whose texts are or begin with Chinese words, such as 任务 5
CHINESE_PARAMETERS = "object|field|run"
#: a Chinese word and a Latin one, a number or a parameter without a blank between them
NO_BLANK = re.compile(
    rf"{CHINESE}(?:[A-Za-z0-9]|%\((?!{CHINESE_PARAMETERS})\w+\))|(?:[A-Za-z0-9]|%\(\w+\)[sd]){CHINESE}"
)
#: names of the original
WITHOUT_BLANK = ("一致性HASH", "y年M月")


def texts_of(message: Message) -> tuple[str, ...]:
    """Return singular and plural, or the only text."""
    return (message.id,) if isinstance(message.id, str) else tuple(message.id)


def catalogue(locale: str) -> Catalog:
    with (APP / "translations" / locale / "LC_MESSAGES" / "messages.po").open("rb") as stream:
        return read_po(stream, locale=locale)


@pytest.fixture(scope="module")
def program_texts() -> set[str]:
    """Return the texts of the program as the extractor finds them."""
    found = extract_from_dir(APP, METHODS, keywords=KEYWORDS)
    return {
        text if isinstance(text, str) else text[0]
        for _file, _line, text, _comments, _context in found
        if text
    }


def test_the_extractor_finds_every_text_of_the_code(program_texts: set[str]) -> None:
    # it skips those inside f-strings
    calls = (
        node
        for file in APP.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call)
    )
    named = [
        call for call in calls if isinstance(call.func, ast.Name) and call.func.id in KEYWORDS and call.args
    ]
    texts = {call.args[0].value for call in named if isinstance(call.args[0], ast.Constant)}
    assert len(texts) > 100
    assert texts - program_texts == set()


@pytest.mark.parametrize("locale", LOCALES)
def test_every_text_is_translated(locale: str, program_texts: set[str]) -> None:
    messages = [message for message in catalogue(locale) if message.id]
    translated = {
        texts_of(message)[0] for message in messages if all(strings_of(message)) and not message.fuzzy
    }
    assert len(program_texts) > 100
    assert program_texts - translated == set()


@pytest.mark.parametrize("locale", LOCALES)
def test_no_text_is_left_over(locale: str, program_texts: set[str]) -> None:
    assert {texts_of(message)[0] for message in catalogue(locale) if message.id} - program_texts == set()


@pytest.mark.parametrize("locale", LOCALES)
def test_a_translation_keeps_the_parameters(locale: str) -> None:
    for message in catalogue(locale):
        if message.id:
            program_texts = set(PARAMETER.findall(texts_of(message)[-1]))  # "Every day" has no number.
            for translated in strings_of(message):
                assert set(PARAMETER.findall(translated)) == program_texts, texts_of(message)[0]


@pytest.mark.parametrize("locale", LOCALES)
def test_one_thing_has_one_word(locale: str) -> None:
    texts = [text for message in catalogue(locale) if message.id for text in strings_of(message)]
    assert [text for text in texts if OTHER_WORDS[locale].search(text)] == []


@pytest.mark.parametrize("locale", LOCALES)
def test_a_blank_stands_between_chinese_and_latin(locale: str) -> None:
    texts = [text for message in catalogue(locale) if message.id for text in strings_of(message)]
    assert [text for text in texts if NO_BLANK.search(text) and text not in WITHOUT_BLANK] == []


@pytest.mark.parametrize("locale", LOCALES)
def test_the_compiled_catalogue_is_up_to_date(locale: str) -> None:
    compiled = read_mo(BytesIO((APP / "translations" / locale / "LC_MESSAGES" / "messages.mo").read_bytes()))
    for message in catalogue(locale):
        if message.id:
            found = compiled.get(texts_of(message)[0], message.context and message.context.encode())
            assert found is not None, texts_of(message)[0]
            assert strings_of(found) == strings_of(message)


def strings_of(message: Message) -> tuple[str, ...]:
    """Return the translations: one, or one per plural form."""
    return (message.string,) if isinstance(message.string, str) else tuple(message.string)
