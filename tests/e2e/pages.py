"""Pages in a real browser: one headless Chromium for all tests of a file, and what every page must hold to."""
import atexit

from harness import *

DESKTOP, PHONE = (1280, 900), (390, 844)
TOOLS = SOURCE / "build-deps" / "page"
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"


class Browser:
    """Speaks with tests/page/browser.js, a line each way."""
    def __init__(self):
        if not shutil.which("node") or not Path(CHROMIUM).exists():
            raise Skip("there is no chromium or no node: tools/install-deps --tests installs them")
        fetched = subprocess.run([SOURCE / "tools/fetch-page-tools"], capture_output=True, text=True, timeout=300)
        if fetched.returncode:
            raise Skip(f"playwright-core and axe-core cannot be had: {fetched.stderr.strip()[-200:]}")
        self.process = subprocess.Popen(
            ["node", SOURCE / "tests/page/browser.js"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "BROWSER_TOOLS": str(TOOLS), "CHROMIUM": CHROMIUM})
        atexit.register(self.close)

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()

    def ask(self, what, **more):
        self.process.stdin.write(json.dumps({"do": what, **more}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert "error" not in answer, (what, more, answer["error"][:600])
        return answer.get("ok")  # undefined is left out

    def open(self, url, **more):
        return self.ask("open", url=url if "://" in str(url) else Path(url).resolve().as_uri(), **more)

    def eval(self, code):
        return self.ask("eval", code=code)


_browser = []


def browser():
    if not _browser:
        _browser.append(Browser())
    return _browser[0]


def write_page(case="redhand-case", *args, name="page.html"):
    result = redhand("report", "--case", case, "--format", "html", "--output", name, *args)
    assert result.returncode == 0, result.stderr
    return Path(name).resolve()


def texts(selector):
    return browser().eval(f"Array.from(document.querySelectorAll({json.dumps(selector)}), e => e.textContent)")


def quiet(page):
    """Nothing was asked for but the page itself, nobody complained, nothing popped up."""
    seen = browser().ask("seen")
    assert seen == {"requests": [page.as_uri()], "messages": [], "dialogs": []}, seen


def check_layout():
    """Nothing sticks out, and the five answers stand on the first two screens: what happened, where, how sure, how to repeat it, how
    to prove a fix. What would change our mind stands beside them, on a phone below."""
    wide, window, height = browser().eval("[document.documentElement.scrollWidth, innerWidth, innerHeight]")
    assert wide <= window, (wide, window)
    below = browser().eval("""Object.fromEntries(Array.from(document.querySelectorAll('.fact, #doubts'), e => [e.id,
                              e.getBoundingClientRect().bottom + scrollY]))""")
    assert max(bottom for name, bottom in below.items() if window > 600 or name != "doubts") <= 2 * height, (below, height)


def check_against(doc, trials):
    """The page says what the document says."""
    verdict, page = doc["verdict"], browser()
    if verdict:
        assert texts("#verdict .class") == [verdict["class"]], texts("#verdict .class")
        assert (texts("#verdict .badge") == ["● firm"]) == (verdict["firm"] and verdict["class"] != "not-caught")
        if verdict["watched"]:
            assert f"caught in {verdict['caught']} of {verdict['watched']}" in texts("#sure")[0], texts("#sure")
        said = texts("#doubts")[0]
        assert all(f"{doubt}." in said or f"{doubt[0].upper()}{doubt[1:]}." in said for doubt in verdict["doubts"][:8]), said
    assert texts("#repeat code") == ([doc["reproduce"]] if doc["reproduce"] else [])
    assert texts("#prove code") == ([doc["prove_fix"]] if doc["prove_fix"] else [])
    assert page.eval("document.querySelectorAll('#ledger tbody tr').length") == len(doc["hypotheses"])
    assert page.eval("document.querySelectorAll('#evidence tbody tr').length") == min(200, len(doc["evidence"]))
    if doc["beside"]:
        check_beside(doc["beside"])
    failed = [trial["trial"] for trial in trials if trial["signatures"]]
    rows = [int(text) for text in texts("#trials tbody th")]
    assert set(rows) <= set(failed) and len(rows) <= 200, (rows, failed)
    assert len(texts("#observers tbody tr")) == len(doc["observers"])
    for row, observer in zip(texts("#observers tbody tr"), doc["observers"]):
        assert f"{observer['failed']} of {observer['trials']} failed" in row, (row, observer)


def check_beside(beside):
    """The bytes of the block in each run, those of a row together; what differs is marked, and nothing else."""
    runs = [beside["failed"], *beside["passed"]]
    shown = browser().eval("""Array.from(document.querySelectorAll('#beside tr:has(.bytes)'), tr => [tr.className,
                              ...Array.from(tr.querySelectorAll('.bytes'), e => e.textContent)])""")
    rows = [row for row in beside["rows"] if len(beside["rows"]) <= 8 or row["watched"] or row["difference"] != "alike"]
    assert len(shown) == len(rows), (shown, rows)
    for row, (marked, *cells) in zip(rows, shown):
        parts = [bytes.fromhex(run["memory"])[row["offset"] - run["offset"]:][:row["len"]] for run in runs]
        assert cells == [part.hex(" ") for part in parts], (row, cells)
        assert (marked == "only") == (row["difference"] == "differs"), (row, marked)
        assert row["difference"] != "alike" or len(set(parts)) == 1, (row, parts)
    # The map has the same bytes after the store, where it is of that store and all of them are known.
    failed, after = beside["failed"], texts("#block svg .hex")[1::2]
    if failed["moment"] == "failure" and any(f"as trial {failed['trial']} shows it" in text for text in texts("#block .why")) and \
            2 * len(after) == len(failed["memory"]):
        assert "".join(after) == failed["memory"], (after, failed)
    assert all(f"Trial {run['trial']}, " in text and f"after store {run['store']} to the field" in text
               for run, text in zip(runs, texts("#beside li"))), texts("#beside li")


def check_links():
    """Every link leads to a place of this page, and no id is there twice."""
    page = browser()
    assert page.eval("""Array.from(document.querySelectorAll('a')).filter(a => !document.getElementById(
                        a.getAttribute('href').slice(1))).map(a => a.outerHTML)""") == []
    assert page.eval("""(() => { const ids = Array.from(document.querySelectorAll('[id]'), e => e.id);
                        return ids.filter((id, i) => ids.indexOf(id) !== i); })()""") == []


def check_addresses():
    """Each address of a part, a step, a trial, a piece of evidence leads to where it can be seen, below what stands at the top of the window."""
    unseen = browser().eval("""(async () => { const bad = [];
        for (const e of document.querySelectorAll('section[id], .card[id], .fact[id], aside[id], tr[id], details[id]')) {
          location.hash = '#' + e.id;
          await new Promise(r => { window.addEventListener('hashchange', r, { once: true }); setTimeout(r, 50); });
          const box = e.getBoundingClientRect(), top = document.querySelector('header').getBoundingClientRect().bottom;
          if (box.height === 0 || box.top >= innerHeight || box.top < top - 1 && box.bottom <= top) bad.push(e.id);
        } return bad; })()""")
    assert unseen == [], unseen


def click_through():
    page = browser()
    for selector in page.eval("Array.from(document.querySelectorAll('nav a'), a => a.getAttribute('href'))"):
        page.ask("click", selector=f"nav a[href='{selector}']")
        assert page.eval("location.hash") == selector
    page.eval("document.querySelectorAll('summary').forEach(s => s.click())")
    assert page.eval("document.querySelectorAll('details:not([open])').length") == 0


def look_at_page(case):
    """Where there is a browser; 171-browser says so where there is none. True: it was."""
    try:
        check_page(case)
    except Skip as reason:
        print(f"# the page was not looked at: {reason}")
        return False
    return True


def check_page(case="redhand-case"):
    """A page of any case: contents, links, layout, and what axe-core says of it with everything unfolded, light and dark, on a desk and on a
    phone."""
    page = write_page(case, name=f"page-{Path(case).name}.html")
    browser().open(page, width=DESKTOP[0], height=DESKTOP[1])
    check_against(facts("report", case=case), stored_trials(case))
    check_layout()
    check_links()
    click_through()
    check_addresses()
    for width, height in DESKTOP, PHONE:
        for scheme in "light", "dark":
            browser().ask("look", width=width, height=height, scheme=scheme)
            violations = browser().ask("axe")
            assert not violations, (width, scheme, violations)
    quiet(page)
    browser().open(page, width=PHONE[0], height=PHONE[1], scheme="dark", script=False)
    check_layout()
    quiet(page)
    return page
