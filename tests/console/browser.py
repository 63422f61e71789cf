"""A browser that shows a console's pages: what it complains of, what keeps people out, what does not fit."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Final

from justhtml import JustHTML, StrictModeError
from playwright.async_api import Browser, BrowserContext, Page, async_playwright

from examples.servers.installer import find_chromium

WIDTHS: Final = (360, 1280, 2560)
# What a browser would otherwise ask of its maker's servers.
_QUIET = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
    # The tests run as root, whom its sandbox does not let in.
    "--no-sandbox",
)
_AXE = resources.files("axe_playwright_python").joinpath("axe.min.js")
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@asynccontextmanager
async def running_browser() -> AsyncIterator[Browser]:
    """Have a browser meanwhile."""
    program = find_chromium()
    assert program is not None, "this needs a browser: apt-get install chromium"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=list(_QUIET))
        try:
            yield browser
        finally:
            await browser.close()


@dataclass(slots=True)
class Reader:
    """Somebody with a browser window; `complaints` are what the browser says of pages."""

    context: BrowserContext
    page: Page
    address: str
    complaints: list[str] = field(default_factory=list)

    async def open(self, path: str) -> Page:
        """Go to a page of the console."""
        await self.page.goto(self.address + path)
        return self.page

    async def too_wide(self) -> list[str]:
        """Name what reaches beyond the window, but for what scrolls by itself."""
        found: list[str] = await self.page.evaluate(_TOO_WIDE)
        return found

    async def shut_out(self) -> list[str]:
        """Give what axe-core finds that keeps somebody from using the page."""
        # A script of the page's own would be refused by its policy, as it should be.
        await self.page.evaluate(_AXE.read_text(encoding="utf-8"))
        found: list[dict[str, Any]] = await self.page.evaluate(
            "rules => axe.run(document, {runOnly: rules}).then(result => result.violations)", _RULES
        )
        return [f"{one['id']}: {one['help']}: {one['nodes'][0]['html'][:200]}" for one in found]


@asynccontextmanager
async def reader(
    browser: Browser, address: str, *, width: int = 1280, dark: bool = False, **more: Any
) -> AsyncIterator[Reader]:
    """Have a window meanwhile."""
    context = await browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", **more
    )
    try:
        one = Reader(context, await context.new_page(), address)
        one.page.on(
            "console", lambda said: one.complaints.append(said.text) if said.type in {"error", "warning"} else None
        )
        one.page.on("pageerror", lambda error: one.complaints.append(str(error)))
        one.page.on("requestfailed", lambda request: one.complaints.append(f"{request.url}: {request.failure}"))
        yield one
    finally:
        await context.close()


def faults_of(html: str) -> list[str]:
    """Give what is wrong with a page's HTML: how it is written, ids that are there twice, names that lead nowhere."""
    try:
        # Made harmless, it would have lost the attributes that are looked at.
        document = JustHTML(html, strict=True, sanitize=False)
    except StrictModeError as error:
        return [str(error)]
    ids = [str((one.attrs or {})["id"]) for one in document.query("[id]")]
    faults = [f"the id {one!r} is there {ids.count(one)} times" for one in set(ids) if ids.count(one) > 1]
    for name in ("for", "aria-labelledby", "aria-describedby", "aria-controls", "headers"):
        for one in document.query(f"[{name}]"):
            words = str((one.attrs or {})[name]).split()
            faults += [f"{name}={word!r} leads nowhere" for word in words if word not in ids]
    return faults


_TOO_WIDE = """() => {
  const wide = [];
  const limit = document.documentElement.clientWidth + 1;
  for (const one of document.body.querySelectorAll("*")) {
    const box = one.getBoundingClientRect();
    if (box.width === 0 || box.right <= limit || one.closest(".unseen, .skip")) continue;
    let scrolls = false;
    for (let above = one.parentElement; above; above = above.parentElement) {
      if (["auto", "scroll"].includes(getComputedStyle(above).overflowX)) scrolls = true;
    }
    if (!scrolls) wide.push(`${one.tagName} ${one.className} ${one.textContent.slice(0, 60)}`);
  }
  return wide;
}"""
