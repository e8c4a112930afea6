// find returns the sections that have all words of the query, the best first.
function find(query, all) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  const count = (text, word) => text.toLowerCase().split(word).length - 1;
  const found = [];
  for (const section of all) {
    let score = 0;
    for (const word of words) {
      const hits = 20 * count(section.title, word) + 5 * count(section.page, word) + Math.min(count(section.text, word), 10);
      if (hits === 0) { score = 0; break; }
      score += hits;
    }
    if (score > 0) found.push({ section, score });
  }
  return found.sort((a, b) => b.score - a.score).slice(0, 20).map((f) => f.section);
}

// excerpt returns the text around the first word of the query.
function excerpt(text, query) {
  const at = Math.max(0, text.toLowerCase().indexOf(query.toLowerCase().split(/\s+/)[0]) - 40);
  return (at > 0 ? "…" : "") + text.slice(at, at + 120);
}

function show(input, list) {
  list.replaceChildren(...find(input.value, sections).map((section) => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = document.body.dataset.up + section.url;
    link.textContent = section.page === section.title ? section.title : section.page + ": " + section.title;
    const text = document.createElement("p");
    text.textContent = excerpt(section.text, input.value);
    item.append(link, text);
    return item;
  }));
}

if (typeof document !== "undefined") {
  const input = document.getElementById("search");
  const list = document.getElementById("results");
  input.addEventListener("input", () => show(input, list));
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== input) {
      event.preventDefault();
      input.focus();
    }
  });
}
