"""What a page did that no page of ours may do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from axe_playwright_python.sync_playwright import Axe

if TYPE_CHECKING:
    from playwright.sync_api import ConsoleMessage, Page, Request

LISTEN = """
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) =>
        window.violations.push(event.violatedDirective + " " + event.blockedURI));
"""
EXPECTED = "Failed to load resource: the server responded with a status of"
"""Chromium's own note about a 4xx or 5xx answer."""

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@dataclass
class Watch:
    """Collects console errors, script errors, policy violations and foreign requests."""

    page: Page
    site: str
    faults: list[str] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.add_init_script(LISTEN)
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.faults.append(f"script: {error}"))
        self.page.on("request", self._asked)

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and not message.text.startswith(EXPECTED):
            self.faults.append(f"console: {message.text}")

    def _asked(self, request: Request) -> None:
        self.addresses.append(request.url)
        if not request.url.startswith(self.site):
            self.faults.append(f"foreign request: {request.url}")

    def assert_clean(self) -> None:
        """Nothing forbidden happened up to now."""
        violations: Any = self.page.evaluate("window.violations || []")
        assert violations == []
        assert self.faults == []


def axe_findings(page: Page) -> list[str]:
    """Everything that axe finds wrong or could not decide about contrast, one line each.

    Of text inside a drawing it can never tell the ground: that is `drawn_contrasts`' part.
    """
    options = {"runOnly": {"type": "tag", "values": RULES}}
    result = Axe().run(page, options=options).response
    found = [*result["violations"]]
    found += [each for each in result["incomplete"] if each["id"] == "color-contrast"]
    return [
        f"{each['id']}: {node['target']} {node.get('failureSummary', '')[:300]}"
        for each in found
        for node in each["nodes"]
        if not (each in result["incomplete"] and node["html"].startswith("<text"))
    ]


CONTRASTS = """
    [...document.querySelectorAll("svg text")].map((text) => {
        const often = {willReadFrequently: true};
        const canvas = document.createElement("canvas").getContext("2d", often);
        const light = (colour) => {
            canvas.fillStyle = colour;
            canvas.fillRect(0, 0, 1, 1);
            const parts = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((each) => {
                const share = each / 255;
                return share <= .04045 ? share / 12.92 : ((share + .055) / 1.055) ** 2.4;
            });
            return .2126 * parts[0] + .7152 * parts[1] + .0722 * parts[2];
        };
        const ground = getComputedStyle(text.closest(".card")).backgroundColor;
        const two = [light(getComputedStyle(text).fill), light(ground)].sort((a, b) => b - a);
        return (two[0] + .05) / (two[1] + .05);
    })
"""


def drawn_contrasts(page: Page) -> list[float]:
    """The contrast of each text in a drawing with the card that it stands on (WCAG 1.4.3)."""
    found: list[float] = page.evaluate(CONTRASTS)
    return found


def overflow(page: Page) -> int:
    """Pixels by which the page is wider than its window."""
    wide: int = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    return wide
