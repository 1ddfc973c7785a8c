"""Does the panel show what the rules give, for every choice, in a real browser; is the keyboard enough to use it?"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from lakerace.observe import COMMITS
from lakerace.panel.answers import Board, board, command
from lakerace.panel.choices import AXES, CONDITIONS, HELD, LAYOUT_OPTIONS, PROFILE_OPTIONS, WINNERS, State
from lakerace.panel.page import headline, page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PHONE = {"width": 390, "height": 844}
MARKS = {"fired": "✕ fired", "passed": "passed", "idle": "nothing to weigh"}

# Sets every control in turn to every option, as a hand would: each is an event of the real control. Answers with the
# texts that the page then shows, each different one once.
CLICK_THROUGH = """([profile, count]) => {
  const form = document.getElementById("choices"), fields = form.elements;
  const shown = (name) => {
    const place = document.querySelector(`[data-show="${name}"]`);
    return place.closest("[hidden]") ? "" : place.textContent;
  };
  const choose = (select, value) => {
    select.value = value;
    select.dispatchEvent(new Event("change", { bubbles: true }));
  };
  const radio = (name, value) => [...fields[name]].find((one) => one.value === value).click();
  const tick = (box, on) => { if (box.checked !== on) box.click(); };
  const values = (select) => [...select.options].map((option) => option.value);
  const rows = (name) => [...document.querySelector(`[data-show="${name}"]`).children];
  const seen = () => [
    ...["headline", "badge", "proof", "sentence", "finding", "check", "source", "raised", "count", "usable", "unit",
      "predict", "race", "held", "winner"].map(shown),
    rows("notes").map((one) => one.textContent).join("|"),
    rows("checks").map((one) => [...one.cells].map((cell) => cell.textContent).join("|")).join("\\n"),
    [...document.querySelectorAll(".flips li:not([hidden]) button")]
      .map((one) => [one.dataset.control, one.dataset.value, one.querySelector("small").textContent].join("|"))
      .join("\\n"),
    [...document.querySelectorAll("[data-when]")]
      .filter((one) => !one.closest("[hidden]") && one.style.display !== "none")
      .map((one) => one.dataset.when).join(),
  ].join("\\u0001");
  const known = new Map(), order = [];
  choose(fields.profile, profile);
  for (const layout of [...fields.layout].map((one) => one.value)) {
    radio("layout", layout);
    for (const vectors of [false, true]) {
      tick(fields.vectors, vectors);
      for (const serializable of [false, true]) {
        tick(fields.serializable, serializable);
        for (const held of values(fields.held)) {
          choose(fields.held, held);
          const group = fields[`condition-${held}`];
          const conditions = group ? [...group].map((one) => one.value) : [null];
          for (const condition of conditions) {
            if (condition !== null) radio(`condition-${held}`, condition);
            for (const winner of values(fields.winner)) {
              choose(fields.winner, winner);
              const text = seen();
              if (!known.has(text)) known.set(text, known.size);
              order.push(known.get(text));
            }
          }
        }
      }
    }
  }
  if (order.length !== count) throw new Error(`${order.length} choices, ${count} awaited`);
  return [[...known.keys()], order];
}"""


@pytest.fixture(scope="module", name="board")
def every_choice() -> Board:
    return board()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra `dev`)")
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is on the PATH")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program)
        yield started
        started.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    file: Path = tmp_path_factory.mktemp("panel") / "panel.html"
    file.write_text(page(), encoding="utf-8")
    return file.as_uri()


@pytest.fixture
def panel(browser: Browser, address: str) -> Iterator[Page]:
    """The page, just opened; whatever it asks the network for or complains about fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    bad: list[str] = []
    opened.on("request", lambda request: None if request.url.startswith(address) else bad.append(request.url))
    opened.on("pageerror", lambda error: bad.append(str(error)))
    opened.on("console", lambda message: bad.append(message.text))
    opened.goto(address)
    yield opened
    context.close()
    assert not bad


def shows(panel: Page, name: str) -> str:
    return panel.locator(f"[data-show={name}]").text_content() or ""


def awaited(board: Board, place: int) -> list[str]:
    """What the page must show of the choice at ``place``, in the order of ``seen`` above."""
    state, said, measured = board.states[place], board.answers[place], board.measured[place]
    if measured:
        mirror = ", the same pair in a mirror: dates, countries and ids exchanged" if measured.mirror else ""
        proof = f"Measured on {measured.engine}: {measured.word} in {measured.race}{mirror}."
    elif state.profile.startswith("databricks"):
        proof = "Predicted by the documented rules: no such engine runs here."
    else:
        proof = "Predicted by the rules: this very pair was not raced."
    line = board.raced.lines.get(state.profile)
    raced = line and said.outcome and state.layout_name in board.raced.layouts[state.profile]
    return [
        headline(said),
        ("measured otherwise" if measured.finding else "measured") if measured else "predicted",
        proof,
        said.sentence,
        f"The engine does otherwise: {measured.finding}." if measured and measured.finding else "",
        said.check,
        said.source,
        said.raised,
        str(len(said.usable)) if said.outcome else "",
        "; ".join(said.usable) or (f"({said.unusable})" if said.unusable else ""),
        said.unit,
        command("predict", state),
        command("race", state, line.name) if raced and line else "",
        HELD[state.held].statement.text,
        WINNERS[state.winner].statement.text,
        "|".join(said.notes),
        "\n".join(f"{name}|{MARKS[mark]}|{found}" for mark, name, found in said.checks),
        "\n".join(
            f"{one.control}|{one.value}|" + ("then A commits" if one.word == COMMITS else f"then A aborts: {one.word}")
            for one in board.changes[place]
        ),
        said.outcome,
    ]


@pytest.mark.parametrize("profile", AXES["profile"].names)
def test_every_choice_shows_what_the_rules_give(panel: Page, board: Board, profile: str) -> None:
    stride = AXES["profile"].stride
    texts, order = panel.evaluate(CLICK_THROUGH, [profile, stride])
    first = AXES["profile"].names.index(profile) * stride
    for number, text in enumerate(order):
        assert texts[text].split("\u0001") == awaited(board, first + number), board.states[first + number]


def test_the_start_commits_and_one_click_flips_it_and_back(panel: Page) -> None:
    assert shows(panel, "headline") == "✓ commits"
    panel.locator("[data-flip][data-control=layout]").click()
    assert panel.locator("[name=layout]:checked").get_attribute("value") == "by-date"
    assert shows(panel, "headline") == "✕ aborts: append"
    panel.locator("[data-flip][data-control=condition]").click()
    assert panel.locator("[name=condition-merge]:checked").get_attribute("value") == "literal"
    assert (shows(panel, "headline"), shows(panel, "count")) == ("✓ commits", "1")
    panel.get_by_role("button", name="back to the start").click()
    assert (shows(panel, "headline"), shows(panel, "count")) == ("✓ commits", "0")
    assert panel.locator("[name=layout]:checked").get_attribute("value") == "flat"


def test_the_keyboard_alone_changes_the_verdict(panel: Page) -> None:
    def focused(what: str) -> Any:
        return panel.evaluate(f"document.activeElement.{what}")

    def tab_to(name: str) -> None:
        for _ in range(20):
            panel.keyboard.press("Tab")
            if focused("name") == name:
                return
        pytest.fail(f"Tab does not come to {name}")

    tab_to("layout")
    panel.keyboard.press("ArrowDown")
    assert shows(panel, "headline") == "✕ aborts: append"
    tab_to("condition-merge")
    panel.keyboard.press("ArrowUp")
    assert focused("value") == "literal"
    assert shows(panel, "headline") == "✓ commits"
    tab_to("winner")
    panel.keyboard.press("ArrowDown")
    panel.keyboard.press("ArrowDown")
    assert focused("value") == "merge-same-date"
    assert shows(panel, "headline") == "✕ aborts: append"
    panel.keyboard.press("ArrowDown")
    assert shows(panel, "headline") == "✓ commits"
    panel.locator("[name=winner]").press("Shift+Tab")
    while focused("name") != "serializable":
        panel.keyboard.press("Shift+Tab")
    panel.keyboard.press("Space")
    assert shows(panel, "headline") == "✕ aborts: append"
    while focused("dataset.flip") is None:
        panel.keyboard.press("Shift+Tab")
    panel.keyboard.press("Enter")
    assert shows(panel, "headline") == "✓ commits"
    assert focused("dataset.flip") is not None


def test_the_address_holds_the_choice(panel: Page, address: str) -> None:
    panel.locator("[name=held]").select_option("update")
    panel.locator("[name=condition-update][value=date]").check()
    panel.locator("[name=profile]").select_option("delta-4.4")
    panel.locator("[name=vectors]").uncheck()
    panel.wait_for_url(lambda url: "vectors=off" in url and "profile=delta-4.4" in url)
    link, headline_there = panel.url, shows(panel, "headline")
    panel.goto("about:blank")
    panel.goto(link)
    assert panel.locator("[name=held]").input_value() == "update"
    assert panel.locator("[name=condition-update][value=date]").is_checked()
    assert not panel.locator("[name=vectors]").is_checked()
    assert shows(panel, "headline") == headline_there
    panel.evaluate("location.hash = '#layout=by-date'")
    panel.locator("[name=layout][value=by-date]:checked").wait_for()
    assert panel.locator("[name=held]").input_value() == "merge"
    for nonsense in ("layout=%3Cscript%3E&held=nothing", "%E0%A4%A&&=&condition=date", "vectors"):
        panel.goto("about:blank")
        panel.goto(f"{address}#{nonsense}")
        assert shows(panel, "headline") in {"✓ commits", "✕ aborts: append"}
        assert panel.locator("[name=layout]:checked").get_attribute("value") == "flat"


def test_a_condition_stays_chosen_over_statements_that_know_it(panel: Page) -> None:
    panel.locator("[name=condition-merge][value=literal]").check()
    for held in ("delete", "optimize", "update"):
        panel.locator("[name=held]").select_option(held)
    assert panel.locator("[name=condition-update]:checked").get_attribute("value") == "literal"
    assert [panel.locator(f"[data-kind={kind}]").is_visible() for kind in CONDITIONS] == [
        kind == "update" for kind in CONDITIONS
    ]


def test_it_fits_a_phone_and_the_verdict_stays_in_sight(panel: Page) -> None:
    panel.set_viewport_size(PHONE)
    panel.locator("[name=layout][value=by-date]").check()
    assert panel.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    panel.locator("[name=profile]").scroll_into_view_if_needed()
    box = panel.locator("[data-show=headline]").bounding_box()
    assert box is not None
    assert 0 <= box["y"] < PHONE["height"] / 2


def test_what_is_copied_is_the_command(panel: Page) -> None:
    panel.evaluate("document.addEventListener('copy', () => { window.copied = String(getSelection()); })")
    panel.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    panel.locator("[data-copy=predict]").click()
    panel.locator("[data-copy=predict]", has_text="copied").wait_for()
    assert panel.evaluate("window.copied") == command("predict", State())


def test_every_control_has_a_name_for_those_who_hear_the_page(panel: Page) -> None:
    for name in [one.label for one in LAYOUT_OPTIONS] + ["deletion vectors", "Serializable"]:
        assert panel.get_by_label(name).first.is_visible()
    assert [panel.get_by_role("combobox").nth(number).get_attribute("name") for number in range(3)] == [
        "held",
        "winner",
        "profile",
    ]
    assert len(PROFILE_OPTIONS) == panel.locator("[name=profile] option").count()
    assert panel.locator("output[aria-live=polite]").count() == 1
