"""The planner's page in a real browser: sliders, numbers, links, keyboard, small and dark screens, accessibility."""

from __future__ import annotations

import json
import platform
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from deniable.cli import main
from deniable.cli.planning import plan_again
from deniable.engines.planned import Planned
from deniable.engines.worker import work_in
from deniable.results import ChooseResult, read_result
from deniable.utility import expected_quality

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no browser on this machine: install chromium to test the page"
)

Document = dict[str, Any]
READY = '[aria-busy="false"]'
SLOW = 30_000  # milliseconds, for a machine that does other things too
EXPLAINED = "?a.mode=explain&a.given=laplace&a.laplace=2"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


@pytest.fixture
def open_page(browser: Browser, served: str) -> Iterator[Callable[..., Page]]:
    """Opens the planner; afterwards no script has failed and no request has left the host."""
    contexts, troubles, asked = [], [], []

    def opened(address: str = "", **settings: Any) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(SLOW)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("console", lambda message: troubles.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{served}/{address}")
        page.wait_for_selector(f".plan:last-child{READY}")
        return page

    yield opened
    for context in contexts:
        context.close()
    refused = [line for line in troubles if "422" not in line]
    assert not refused, refused
    elsewhere = [
        url for url in asked if urlsplit(url).netloc != urlsplit(served).netloc and not url.startswith("blob:")
    ]
    assert not elsewhere


@contextmanager
def answered(page: Page) -> Iterator[None]:
    """Waits for the answer to what is done inside."""
    with page.expect_response(re.compile("/api/plan/"), timeout=SLOW):
        yield
    page.wait_for_selector(f".plan:last-child{READY}")


def figure(page: Page | Locator, name: str) -> str:
    return page.locator(f'[data-figure="{name}"] dd').inner_text()


def shown_command(page: Page | Locator) -> str:
    return page.locator(".command").inner_text()


def slider(page: Page, name: str) -> Locator:
    return page.locator(f'input[type="range"][data-field="{name}"]').first


def move_to(page: Page, name: str, value: str) -> None:
    """Drag a slider to the stop whose number is `value`."""
    handle = slider(page, name)
    wanted = handle.evaluate(
        """(slider, value) => {
            const number = slider.closest('.field').querySelector('input[type=number]');
            for (let stop = 0; stop <= Number(slider.max); stop += 1) {
                slider.value = stop;
                slider.dispatchEvent(new Event('input', { bubbles: true }));
                if (number.value === value) return stop;
            }
            return -1;
        }""",
        value,
    )
    assert wanted >= 0, f"{name} has no stop {value}"


def test_a_moved_slider_shows_the_command_lines_numbers(
    open_page: Callable[..., Page], by_command: Callable[[str], Document]
) -> None:
    page = open_page()
    assert figure(page, "noise") == "1.6811"
    with answered(page):
        move_to(page, "belief", "90")
    expect(page.locator(".command")).to_contain_text("--belief 0.9 ", timeout=SLOW)
    document = by_command(shown_command(page))
    assert document["input"]["belief"] == 0.9
    assert figure(page, "noise") == page.evaluate(
        "n => (Math.ceil(n * 1e4 * (1 - 1e-12)) / 1e4).toString()", document["noise"]
    )
    assert figure(page, "belief") == "90 %"
    assert "at most 90\u00a0% sure" in page.locator(".lead").inner_text()
    assert figure(page, "noise") in page.locator(".kept").inner_text()
    assert page.locator(".methods tbody tr").count() == 7
    assert page.locator(".charts canvas").count() == 2


def test_keyboard_alone_is_enough(open_page: Callable[..., Page]) -> None:
    page = open_page()
    reached: list[str] = []
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.dataset.field ?? document.activeElement.textContent"))
        if page.evaluate("document.activeElement.type") == "range":
            break
    assert reached[0] == "Skip to the plan"
    assert reached[-1] == "belief"
    with answered(page):
        page.keyboard.press("ArrowRight")
    assert figure(page, "belief") == "76 %"
    with answered(page):
        page.keyboard.press("End")
    assert figure(page, "belief") == "99 %"
    page.locator("#compare").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".plan")).to_have_count(2)


def test_a_link_brings_the_same_plan(open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.get_by_label("Promise by").select_option("ppv")
    page.locator(".more summary").click()
    with answered(page):
        page.get_by_label("… as one of k people", exact=True).fill("11")
    expect(page.locator(".command")).to_contain_text("--prior 0.0909", timeout=SLOW)
    again = open_page("?" + urlsplit(page.url).query)
    assert shown_command(again) == shown_command(page)
    assert figure(again, "noise") == figure(page, "noise")
    assert parse_qs(urlsplit(again.url).query)["a.promise"] == ["ppv"]
    assert "1/11" in shown_command(again) or "0.0909" in shown_command(again)


def test_batches_and_files_are_asked_for(open_page: Callable[..., Page], tmp_path: Path) -> None:
    """How batches are drawn changes the fields; shuffled passes are told first; a file of Opacus is read."""
    page = open_page("?a.mode=explain&a.given=noise&a.sampling=shuffled")
    expect(page.locator(".caution")).to_contain_text("the value for Poisson batches is not theirs", timeout=SLOW)
    expect(page.locator(".command")).to_contain_text("--sampling shuffled --steps-per-epoch 200 --epochs 30")
    with answered(page):
        page.get_by_label("Batches are drawn").select_option("allocation")
    expect(page.locator(".command")).to_contain_text("--sampling allocation --steps-per-epoch 200", timeout=SLOW)
    page.get_by_label("Given is").select_option("opacus")
    history = tmp_path / "history.json"
    history.write_text("[[1.0, 0.01, 500], [1.3, 0.01, 100]]")
    page.get_by_label("File", exact=True).set_input_files(history)
    expect(page.locator(".command")).to_contain_text("deniable explain --opacus opacus.json", timeout=SLOW)
    expect(page.locator(".lead")).to_contain_text("at most 83.6", timeout=SLOW)
    history.write_text("no JSON")
    page.get_by_label("File", exact=True).set_input_files(history)
    expect(page.locator(".subject small").first).to_have_text("history.json is not JSON.", timeout=SLOW)


def test_back_stays_on_the_page_and_a_copy_is_confirmed(open_page: Callable[..., Page]) -> None:
    page = open_page(EXPLAINED)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    with answered(page):
        page.get_by_label("Laplace scale", exact=True).fill("4")
    expect(page.locator(".command")).to_contain_text("--laplace 4", timeout=SLOW)
    page.locator("#share").click()
    expect(page.locator("#share")).to_have_text("Copied ✓")
    expect(page.locator("#share-note")).to_contain_text("on this machine only")
    link = parse_qs(urlsplit(page.evaluate("navigator.clipboard.readText()")).query, keep_blank_values=True)
    assert (link["a.laplace"], link["a.adjacency"], link["a.prior"]) == (["4"], [""], ["0.5"])
    page.go_back()
    expect(page.locator(".command")).to_contain_text("--laplace 2", timeout=SLOW)
    assert page.locator("input[type=number][data-field=laplace]").input_value() == "2"


def test_the_page_and_its_errors_speak_in_percent(open_page: Callable[..., Page]) -> None:
    page = open_page()
    with answered(page):
        page.get_by_label("Nobody becomes surer than", exact=True).fill("30")
    expect(page.locator(".problem")).to_contain_text("must be above 50 % (the prior belief), got 30 %")


def test_a_weak_promise_is_warned_of(open_page: Callable[..., Page]) -> None:
    page = open_page("?a.mode=explain&a.given=epsilon&a.epsilon=20")
    expect(page.locator(".warning")).to_contain_text("hardly any protection")
    assert "just under 100 %" in figure(page, "belief")
    other = open_page(EXPLAINED)
    assert other.locator(".warning").is_hidden()
    expect(other.locator(".expected")).to_contain_text("of this release nothing is known")
    assert other.locator(".cost").is_hidden()


def test_two_plans_stand_side_by_side(open_page: Callable[..., Page]) -> None:
    page = open_page(EXPLAINED)
    page.locator("#compare").click()
    expect(page.locator(f".plan{READY}")).to_have_count(2, timeout=SLOW)
    first, second = page.locator(".plan").nth(0), page.locator(".plan").nth(1)
    with answered(page):
        second.get_by_label("Laplace scale", exact=True).fill("4")
    expect(second.locator(".command")).to_contain_text("--laplace 4", timeout=SLOW)
    assert "--laplace 2" in shown_command(first)
    assert figure(first, "belief") != figure(second, "belief")
    boxes = [plan.locator(".results").bounding_box() or {} for plan in (first, second)]
    assert boxes[0]["y"] == pytest.approx(boxes[1]["y"], abs=2)
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
    again = open_page("?" + urlsplit(page.url).query)
    assert shown_command(again.locator(".plan").nth(1)) == shown_command(second)


@pytest.mark.parametrize("address", ["", EXPLAINED, "?a.mode=choose&b.mode=explain"])
def test_a_small_screen_does_not_scroll_sideways(open_page: Callable[..., Page], address: str) -> None:
    page = open_page(address, viewport={"width": 360, "height": 740})
    for details in page.locator("summary:visible").all():
        details.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_dark_screen_is_dark(open_page: Callable[..., Page]) -> None:
    brightness = """() => {
        const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number);
        return (r + g + b) / 3;
    }"""
    assert open_page(EXPLAINED, color_scheme="dark").evaluate(brightness) < 60
    assert open_page(EXPLAINED, color_scheme="light").evaluate(brightness) > 200


@pytest.mark.parametrize("plans", ["", "?a.mode=choose&b.mode=explain&b.given=epsilon"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_barriers(open_page: Callable[..., Page], scheme: str, plans: str) -> None:
    page = open_page(plans, color_scheme=scheme)
    for details in page.locator("summary:visible").all():
        details.click()
    found = Axe().run(page).response["violations"]
    assert not found, [(barrier["id"], barrier["nodes"][0]["html"]) for barrier in found]


def test_a_refusal_is_said_where_it_belongs(open_page: Callable[..., Page]) -> None:
    page = open_page()
    with answered(page):
        page.get_by_label("Batch", exact=True).fill("70000")
    expect(page.locator(".problem")).to_contain_text("Batch must be a whole number from 1 to records (60000)")
    expect(page.locator('input[type="number"][data-field="batch"]')).to_have_attribute("aria-invalid", "true")
    with answered(page):
        page.get_by_label("Batch", exact=True).fill("600")
    expect(page.locator(".problem")).to_be_hidden()


def test_runs_are_opened_and_their_names_are_text(open_page: Callable[..., Page]) -> None:
    page = open_page(EXPLAINED)
    hostile = page.get_by_role("link", name="<img src=x onerror=alert(1)>")
    expect(hostile).to_be_visible()
    assert page.locator("#runs img").count() == 0
    with page.context.expect_page() as opened:
        hostile.click()
    opened.value.wait_for_load_state()
    assert opened.value.title() == str(len("<img src=x onerror=alert(1)>"))


def test_a_campaign_under_way_tells_how_far_it_is(open_page: Callable[..., Page], folder: Path) -> None:
    """As `deniable status` does, and again while the page is open; once it is judged, its report is there."""
    place = folder / "under way"
    asked = ["digits", "--noise=1", "--trials=300", "--steps=1", "--records=10", "--model=logistic", "--stop=certain"]
    with pytest.raises(SystemExit):
        main(["audit", *asked, f"--out={place}", "--plan"])
    ((campaign, _),) = plan_again(Planned.read(place))
    assert campaign.blocks == 3
    work_in(place, replace(campaign, blocks=1))
    page = open_page(EXPLAINED)
    page.clock.install()
    page.reload()
    item = page.locator("#runs li", has_text="under way, no report")
    expect(item).to_contain_text("1 of 3 blocks finished.")
    expect(item).to_contain_text(f"blocks a minute on {platform.node()} (1 CPU)")
    expect(item).to_contain_text("of the first 100 trials")
    read = page.get_by_role("link", name="local", exact=True)
    read.focus()
    work_in(place, campaign)
    page.clock.run_for(6000)
    expect(item).to_contain_text("3 of 3 blocks finished.", timeout=SLOW)
    expect(read).to_be_focused()
    expect(item).to_contain_text("Watched over 300 trials")
    expect(item).to_contain_text("This judges the blocks: deniable audit")
    with pytest.raises(SystemExit):
        main(shlex.split(Planned.read(place).finish)[1:])
    page.clock.run_for(6000)
    expect(page.get_by_role("link", name="under way")).to_be_visible(timeout=SLOW)
    shutil.rmtree(place)


def test_an_address_made_by_hand_does_no_harm(open_page: Callable[..., Page]) -> None:
    page = open_page("?a.mode=explain&a.given=epsilon&a.epsilon=<b>x&a.delta=1e999&a.prior=&zz=1")
    assert "--epsilon 1" in shown_command(page)


def test_the_plan_is_exported(open_page: Callable[..., Page]) -> None:
    page = open_page(EXPLAINED)
    with page.expect_download() as saved:
        page.get_by_role("link", name="Download as JSON").click()
    assert saved.value.suggested_filename == "plan-a.json"
    assert '"schema": "deniable/explain/2"' in saved.value.path().read_text()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator(".copy-text").click()
    expect(page.locator("#status")).to_have_text("Copied.")
    assert page.evaluate("navigator.clipboard.readText()") == page.locator(".assessment").inner_text()


def test_strength_and_cost_follow_the_promise(open_page: Callable[..., Page]) -> None:
    """On the first screen: the person's sentence, how strong it is, what follows, what it costs."""
    page = open_page()
    expect(page.locator(".graded")).to_contain_text("Strong protection.")
    expect(page.locator(".cost")).to_contain_text("accuracy on Adult", timeout=SLOW)
    for place in (".lead", ".strength", ".cost", ".kept"):
        box = page.locator(place).bounding_box() or {}
        assert box["y"] + box["height"] < 900
    cheap = page.locator(".expected").get_attribute("data-low")
    with answered(page):
        page.get_by_label("Nobody becomes surer than", exact=True).fill("51")
    expect(page.locator(".expected")).not_to_have_attribute("data-low", cheap or "", timeout=SLOW)
    with answered(page):
        page.get_by_label("Nobody becomes surer than", exact=True).fill("99")
    expect(page.locator(".graded")).to_contain_text("Weak protection.")
    assert page.locator(".scale .here").inner_text() == "weak"
    page.locator(".costs select").select_option("mnist")
    expect(page.locator(".cost")).to_contain_text("on MNIST", timeout=SLOW)
    assert "a.frontier=mnist" in page.url


def test_a_frontier_of_ones_own_is_read(open_page: Callable[..., Page], tmp_path: Path) -> None:
    page = open_page()
    own = tmp_path / "frontier.json"
    measured = Path(expected_quality.__file__).parent / "measured" / "mnist.json"
    own.write_text(measured.read_text().replace("mnist", "mine"))
    page.locator(".costs select").select_option("own")
    expect(page.locator(".expected")).to_contain_text("Choose the frontier.json")
    page.get_by_label("frontier.json of deniable frontier").set_input_files(own)
    expect(page.locator(".cost")).to_contain_text("accuracy on mine", timeout=SLOW)
    own.write_text("{}")
    page.get_by_label("frontier.json of deniable frontier").set_input_files(own)
    expect(page.locator(".expected")).to_contain_text("is no frontier.json")


def test_the_plan_as_json_holds_what_is_expected(open_page: Callable[..., Page]) -> None:
    page = open_page()
    expect(page.locator(".cost")).to_contain_text("accuracy on Adult", timeout=SLOW)
    with page.expect_download() as saved:
        page.get_by_role("link", name="Download as JSON").click()
    found = read_result(json.loads(saved.value.path().read_text()))
    assert isinstance(found, ChooseResult)
    assert found.expected is not None
    assert found.expected.text.replace(" %", "\u00a0%") == page.locator(".expected").inner_text()
    assert found.strength is not None
    assert page.locator(".scale .here").inner_text() == found.strength.name


def test_the_same_protection_is_carried_over(open_page: Callable[..., Page]) -> None:
    """Another kind of promise, and a release in place of a promise, begin where the last answer was."""
    page = open_page()
    before = figure(page, "noise"), figure(page, "accuracy")
    for promise in ("epsilon", "advantage", "tpr", "success", "belief"):
        with answered(page):
            page.get_by_label("Promise by").select_option(promise)
        assert (figure(page, "noise")[:6], figure(page, "accuracy")) == (before[0][:6], before[1]), promise
    with answered(page):
        page.get_by_role("radio", name="explain a release").click()
    assert figure(page, "accuracy") == before[1]
    noise = float(page.locator("input[type=number][data-field=noise]").input_value())
    assert noise == pytest.approx(float(before[0]), rel=1e-4)


def test_words_are_explained_by_pointer_and_keyboard(open_page: Callable[..., Page]) -> None:
    page = open_page()
    word = page.locator(".tiles .word", has_text="advantage")
    word.focus()
    expect(page.locator("#tip")).to_be_visible()
    expect(page.locator("#tip")).to_contain_text("members found minus others accused")
    page.keyboard.press("Escape")
    expect(page.locator("#tip")).to_be_hidden()
    page.locator(".tiles .word", has_text="Epsilon").hover()
    expect(page.locator("#tip")).to_contain_text("Smaller is stricter")
    page.locator(".words summary").click()
    expect(page.locator(".words dt").first).to_have_text("accuracy")


def test_plans_are_kept_and_compared(open_page: Callable[..., Page]) -> None:
    page = open_page(EXPLAINED)
    page.get_by_label("Keep plan A as").fill("noisy <b>")
    page.keyboard.press("Enter")
    row = page.locator(".kept-plans tbody tr")
    expect(row.locator(".strength")).not_to_have_text("…", timeout=SLOW)
    assert row.locator("th").inner_text() == "noisy <b>"
    assert row.locator(".belief").inner_text() == figure(page, "belief")
    with answered(page):
        page.get_by_label("Laplace scale", exact=True).fill("4")
    page.reload()
    page.wait_for_selector(READY)
    page.get_by_role("button", name="Open as B: noisy <b>").click()
    expect(page.locator(".plan").nth(1).locator(".command")).to_contain_text("--laplace 2", timeout=SLOW)
    assert "b.laplace=2" in page.url
    page.get_by_role("button", name="Forget: noisy <b>").click()
    expect(row).to_have_count(0)
