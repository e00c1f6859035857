// Search over the sections of all pages: every word has to occur; titles count more than text.
// The sections come as a script, which pages opened from a disk may load too.
const script = document.currentScript;
const root = script.dataset.root;
const box = document.getElementById("search");
const found = document.getElementById("found");
let sections = null;

async function look() {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  sections ??= loaded();
  const all = await sections;
  if (words.join(" ") !== box.value.toLowerCase().split(/\s+/).filter(Boolean).join(" ")) return;
  const ranked = words.length === 0 ? [] : all
    .map((section) => ({ section, points: words.map((word) => points(section, word)) }))
    .filter(({ points }) => points.every((one) => one > 0))
    .map(({ section, points }) => ({ section, sum: points.reduce((one, other) => one + other) }))
    .sort((one, other) => other.sum - one.sum)
    .slice(0, 12);
  found.replaceChildren(...ranked.map(({ section }) => {
    const link = document.createElement("a");
    link.href = root + section.url;
    link.textContent = section.title === section.page ? section.page : `${section.page}: ${section.title}`;
    return link;
  }));
}

function loaded() {
  return new Promise((resolve, reject) => {
    const loading = document.createElement("script");
    loading.src = `${root}sections.js`;
    loading.onload = () => resolve(window.docsSections);
    loading.onerror = reject;
    document.head.append(loading);
  });
}

function points(section, word) {
  if (section.title.toLowerCase().includes(word)) return 10;
  return section.text.includes(word) ? 1 : 0;
}

box.addEventListener("input", look);
