/** The style and the script of the page about links. As texts, since the program of a relay is one file. */

export const linksStyle = `
:root { --ink: #1d2433; --muted: #5b6475; --page: #f5f6f9; --card: #fff; --line: #dfe3ea; --bar: #3b6ef5;
  --good: #14713a; --weak: #8a5200; --useless: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8ebf2; --muted: #a2abbd; --page: #12161f; --card: #1b212d; --line: #303847; --bar: #7ea2ff;
    --good: #6fd697; --weak: #f2b75c; --useless: #ff8a80; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { margin: 0; font-size: 1.5rem; line-height: 1.25; }
.muted { color: var(--muted); margin: .25rem 0 1rem; }
#news { font-weight: 600; }
.stale { opacity: .5; }
ol { list-style: none; margin: 0; padding: 0; display: grid; gap: 1rem;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr)); }
li { background: var(--card); border: 1px solid var(--line); border-left: .35rem solid var(--bar);
  border-radius: .6rem; padding: 1rem; min-width: 0; }
li[data-verdict=good] { border-left-color: var(--good); }
li[data-verdict=weak] { border-left-color: var(--weak); }
li[data-verdict=useless] { border-left-color: var(--useless); }
h2 { margin: 0; font-size: 1.05rem; display: flex; justify-content: space-between; gap: 1rem; }
.rate { font-variant-numeric: tabular-nums; white-space: nowrap; }
.sentence { margin: .35rem 0 .75rem; }
[data-verdict=good] .sentence { color: var(--good); }
[data-verdict=weak] .sentence { color: var(--weak); }
[data-verdict=useless] .sentence { color: var(--useless); }
.share { height: .5rem; border-radius: .25rem; background: var(--line); overflow: hidden; }
.share div { height: 100%; background: var(--bar); }
svg { display: block; width: 100%; height: 3rem; margin: .75rem 0; }
polyline { fill: none; stroke: var(--bar); stroke-width: 2; vector-effect: non-scaling-stroke; }
dl { margin: 0; display: grid; grid-template-columns: repeat(auto-fit, minmax(7rem, 1fr)); gap: .5rem; }
dt { color: var(--muted); font-size: .85rem; }
dd { margin: 0; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
`

export const linksScript = `
'use strict'
const list = document.getElementById('links')
const news = document.getElementById('news')
const seconds = 60
/** By link: its card, its last count of bytes, and its rates of the last minute in kbps. */
const known = new Map()
let failures = 0

function create(name, className, parent) {
  const element = document.createElement(name)
  if (className) element.className = className
  parent.append(element)
  return element
}

function createCard(id) {
  const card = create('li', '', list)
  card.dataset.link = id
  const heading = create('h2', '', card)
  const name = create('span', '', heading)
  const rate = create('span', 'rate', heading)
  const sentence = create('p', 'sentence', card)
  const share = create('div', '', create('div', 'share', card))
  const chart = document.createElementNS('http://www.w3.org/2000/svg', 'svg')
  chart.setAttribute('viewBox', '0 0 ' + (seconds - 1) + ' 10')
  chart.setAttribute('preserveAspectRatio', 'none')
  chart.setAttribute('role', 'img')
  chart.setAttribute('aria-label', 'The rate of the last minute')
  const line = document.createElementNS('http://www.w3.org/2000/svg', 'polyline')
  chart.append(line)
  card.append(chart)
  return { card, name, rate, sentence, share, line, facts: create('dl', '', card), rates: [] }
}

const formatRate = (kbps) => (kbps < 1000 ? Math.round(kbps) + ' kbps' : (kbps / 1000).toFixed(1) + ' Mbps')
const inUnit = (value, unit) => (value === undefined ? undefined : value + ' ' + unit)

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text
}

function setFacts(facts, values) {
  const shown = Object.entries(values).filter(([, value]) => value !== undefined)
  while (facts.children.length > shown.length) facts.lastElementChild.remove()
  shown.forEach(([title, value], index) => {
    const pair = facts.children[index] ?? create('div', '', facts)
    setText(pair.firstElementChild ?? create('dt', '', pair), title)
    setText(pair.children[1] ?? create('dd', '', pair), String(value))
  })
}

function showLink(link, number, at) {
  const shown = known.get(link.id) ?? createCard(link.id)
  const { bytes = link.bytes, at: before = at } = shown
  const kbps = at > before ? Math.max(0, ((link.bytes - bytes) * 8) / (at - before)) : 0
  if (at > before) shown.rates = [...shown.rates, kbps].slice(-seconds)
  known.set(link.id, Object.assign(shown, { bytes: link.bytes, at }))
  shown.card.dataset.verdict = link.verdict ?? ''
  setText(shown.name, 'Link ' + number)
  setText(shown.rate, formatRate(kbps))
  setText(shown.sentence, link.sentence)
  shown.share.style.width = link.share_pct + '%'
  setFacts(shown.facts, {
    'Share': inUnit(link.share_pct, '%'),
    'Arrives later by': inUnit(link.late_ms, 'ms'),
    'Lost and repeated': inUnit(link.repeat_pct, '%'),
    'Longest gap': inUnit(link.gap_ms_max, 'ms'),
    'Round trip': inUnit(link.rtt_ms, 'ms'),
    'Up for': inUnit(link.uptime_s, 's'),
    'Address': link.addr,
  })
}

function drawLines() {
  const most = Math.max(1, ...[...known.values()].flatMap(({ rates }) => rates))
  for (const { line, rates } of known.values()) {
    const from = seconds - rates.length
    line.setAttribute('points', rates.map((kbps, index) => from + index + ',' + (10 - (9.5 * kbps) / most)).join(' '))
  }
}

function show(links) {
  const at = performance.now()
  setText(news, links.length === 0 ? 'No stream comes in. Start it in your encoder.' : '')
  const ids = new Set(links.map(({ id }) => id))
  for (const [id, { card }] of known) {
    if (ids.has(id)) continue
    card.remove()
    known.delete(id)
  }
  links.forEach((link, index) => showLink(link, index + 1, at))
  drawLines()
}

async function update() {
  try {
    const url = '/links/data?key=' + encodeURIComponent(list.dataset.key)
    const response = await fetch(url, { cache: 'no-store', signal: AbortSignal.timeout(5000) })
    if (!response.ok) throw new Error(String(response.status))
    show((await response.json()).links)
    failures = 0
    list.className = ''
  } catch {
    failures += 1
    if (failures > 2) {
      list.className = 'stale'
      setText(news, 'The relay does not answer any more. If it still runs, open this page again from your relays page.')
    }
  }
  setTimeout(update, 1000)
}

update()
`
