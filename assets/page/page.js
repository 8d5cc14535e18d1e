/* The page is complete without this: it copies, filters, goes from trial to trial, and on a live page
   follows the case. Nothing from the case is ever made markup here. */
(function () {
  "use strict";
  var root = document.documentElement;
  root.classList.add("scripted");

  function copied(button) {
    var was = button.dataset.was || button.textContent;
    button.dataset.was = was;
    button.textContent = "Copied";
    setTimeout(function () { button.textContent = was; }, 1500);
  }

  function copyByHand(text) {
    var area = document.createElement("textarea");
    area.value = text;
    area.setAttribute("aria-hidden", "true");
    document.body.appendChild(area);
    area.select();
    var done = document.execCommand("copy");
    area.remove();
    return done;
  }

  document.addEventListener("click", function (event) {
    var button = event.target.closest("button");
    if (!button) return;
    var text = button.dataset.copyText;
    if (text === undefined && "copy" in button.dataset) {
      text = button.parentElement.querySelector("code").textContent;
    }
    if (text === undefined) return;
    if (navigator.clipboard && window.isSecureContext) {
      navigator.clipboard.writeText(text).then(function () { copied(button); }, function () {
        if (copyByHand(text)) copied(button);
      });
    } else if (copyByHand(text)) {
      copied(button);
    }
  });

  var filter = document.getElementById("filter");
  function applyFilter() {
    var wanted = filter.value.trim().toLowerCase();
    document.querySelectorAll("tbody tr, .journal > li, .cells > li").forEach(function (row) {
      row.classList.toggle("hidden", wanted !== "" && !row.textContent.toLowerCase().includes(wanted));
    });
  }
  filter.addEventListener("input", applyFilter);

  var current = -1;
  function go(step) {
    var rows = Array.prototype.filter.call(document.querySelectorAll("#trials tbody tr"), function (row) {
      return !row.classList.contains("hidden");
    });
    if (rows.length === 0) return;
    document.querySelectorAll("tr.current").forEach(function (row) { row.classList.remove("current"); });
    current = Math.max(0, Math.min(rows.length - 1, current + step));
    rows[current].classList.add("current");
    rows[current].scrollIntoView({ block: "center" });
  }

  document.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.target === filter) {
      if (event.key === "Escape") { filter.value = ""; applyFilter(); filter.blur(); }
      return;
    }
    if (event.key === "/") { event.preventDefault(); filter.focus(); }
    else if (event.key === "j") go(1);
    else if (event.key === "k") go(-1);
  });

  function openTarget() {
    var id = decodeURIComponent(location.hash.slice(1));
    var target = id && document.getElementById(id);
    for (var at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    if (target) target.scrollIntoView();
  }
  window.addEventListener("hashchange", openTarget);
  if (location.hash) openTarget();

  if (root.dataset.live === undefined) return;

  /* What was open stays open: by its place in the page. */
  function openPlaces() {
    return Array.prototype.map.call(document.querySelectorAll("main details"), function (d) { return d.open; });
  }
  function takeOver(text) {
    var fresh = new DOMParser().parseFromString(text, "text/html");
    var open = openPlaces();
    ["main", "nav"].forEach(function (part) {
      var old = document.querySelector(part), now = fresh.querySelector(part);
      if (old && now) old.replaceWith(document.importNode(now, true));
    });
    document.querySelectorAll("main details").forEach(function (d, i) { if (open[i]) d.open = true; });
    document.title = fresh.title;
    root.dataset.live = fresh.documentElement.dataset.live;
    applyFilter();
  }
  var live = document.getElementById("live"), busy = false, again = false;
  function say(text, lost) { live.textContent = text; live.classList.toggle("lost", lost); }
  function update() {
    if (busy) { again = true; return; }
    busy = true;
    fetch("./", { cache: "no-store" }).then(function (reply) {
      if (!reply.ok) throw new Error(reply.status);
      return reply.text();
    }).then(takeOver).catch(function () { say("the server does not answer", true); }).then(function () {
      busy = false;
      if (again) { again = false; update(); }
    });
  }
  var events = new EventSource("events");
  events.addEventListener("state", function (event) {
    say("live", false);
    if (event.data !== root.dataset.live) update();
  });
  events.onerror = function () { say("connection lost, trying again", true); };
}());
