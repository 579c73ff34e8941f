// Keeps the page fresh and the filter instant. Everything works without it.
"use strict";
(() => {
  const live = () => document.querySelector(".live");
  let busy = false, again = false, refused = 0;

  // Takes the parts marked data-live from the same page, made anew by the server.
  async function refresh() {
    if (busy) { again = true; return; }
    busy = true;
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" }, credentials: "same-origin" });
      if (answer.ok) {
        const next = new DOMParser().parseFromString(await answer.text(), "text/html");
        for (const part of document.querySelectorAll("[data-live]")) swap(part, next.querySelector(`[data-live="${part.dataset.live}"]`));
        relative();
        state(true);
      }
    } catch { state(false); }
    busy = false;
    if (again) { again = false; refresh(); }
  }

  function swap(part, next) {
    if (!next || part.dataset.source === next.innerHTML) return;
    const focus = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    part.dataset.source = next.innerHTML;
    part.replaceChildren(...next.childNodes);
    if (focus) [...part.querySelectorAll("a")].find((a) => a.getAttribute("href") === focus)?.focus();
  }

  function state(on) {
    const mark = live();
    if (!mark) return;
    mark.hidden = false;
    mark.dataset.state = on ? "on" : "off";
    const word = on ? "live" : "out of reach";
    if (mark.textContent !== word) mark.textContent = word;
  }

  // "12 s ago" beside the exact time, which stays in the title.
  function relative() {
    for (const time of document.querySelectorAll("time")) {
      const seconds = Math.round((new Date(time.dateTime) - Date.now()) / 1000), n = Math.abs(seconds);
      const span = n < 60 ? `${n} s` : n < 3600 ? `${Math.round(n / 60)} min` : n < 86400 ? `${Math.round(n / 3600)} h` : `${Math.round(n / 86400)} d`;
      time.title = time.dateTime;
      time.textContent = seconds > 0 ? `in ${span}` : `${span} ago`;
    }
  }

  let waiting;
  document.addEventListener("input", (event) => {
    const form = event.target.closest("form.filter");
    if (!form) return;
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const words = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
      history.replaceState(null, "", `${location.pathname}?${words}`);
      refresh();
    }, 200);
  });
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName ?? "");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      const search = document.querySelector('input[type="search"]');
      if (search) { event.preventDefault(); search.focus(); search.select(); }
    }
  });

  function listen() {
    const events = new EventSource("/events");
    events.addEventListener("change", () => { refused = 0; refresh(); });
    events.onerror = () => { state(false); if (events.readyState === EventSource.CLOSED && refused++ < 100) setTimeout(listen, 5000); };
  }
  relative();
  setInterval(relative, 10000);
  listen();
})();
