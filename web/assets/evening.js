/**
 * Zooms the chart of a session by drag, keys, touch and buttons, and marks the time of day that the address names. Draws
 * as `evening-series.ts` does, from the values that the page contains, so that no request is needed.
 */

const slotMillis = 10_000
const drawnPointsMax = 1200
const [width, height] = [1200, 240]
const viewMillisMin = 60_000
const momentMillis = 600_000
const secondsTicksMaxMillis = 600_000
const dragPixelsMin = 8

/** As in `evening-series.ts`. */
export function reduceToLines(values, first, last) {
  const count = last - first + 1
  const columns = count <= drawnPointsMax ? count : drawnPointsMax / 2
  const lines = []
  let endSlot = Number.NEGATIVE_INFINITY
  for (let column = 0; column < columns; column += 1) {
    const begin = first + Math.floor((column * count) / columns)
    const end = first + Math.floor(((column + 1) * count) / columns)
    const present = extremesOf(values, begin, end)
    if (!present) continue
    if (present.begin - endSlot > 2) lines.push([])
    lines.at(-1).push(...present.points)
    endSlot = present.end
  }
  return lines
}

function extremesOf(values, begin, end) {
  let [low, high, firstSlot, lastSlot] = [-1, -1, -1, -1]
  for (let slot = begin; slot < end; slot += 1) {
    const value = values[slot] ?? null
    if (value === null) continue
    if (firstSlot < 0) [low, high, firstSlot] = [slot, slot, slot]
    lastSlot = slot
    if (value < values[low]) low = slot
    if (value > values[high]) high = slot
  }
  if (firstSlot < 0) return undefined
  const slots = low === high ? [low] : [Math.min(low, high), Math.max(low, high)]
  return { points: slots.map((slot) => [slot, values[slot]]), begin: firstSlot, end: lastSlot }
}

/** Undefined until there is something to draw. */
let chart
let data
let plot
const part = (name) => chart.querySelector(`[data-${name}]`)

/** The name of the second line, or an empty text. */
let second = ''
/** The moment that the address names, in milliseconds since 1970. */
let moment
/** What is shown of the session. */
let view

function start() {
  chart = document.querySelector('[data-evening]') ?? undefined
  if (!chart) return
  document.removeEventListener('parts-replaced', start)
  data = JSON.parse(chart.dataset.evening)
  plot = part('plot')
  document.documentElement.classList.add('has-script')
  second = chart.querySelector('[data-series][aria-current]')?.dataset.series ?? ''
  moment = chart.dataset.at === undefined ? findClock(chart.dataset.clock) : Number(chart.dataset.at)
  view = moment === undefined ? { from: data.from, to: data.to } : viewAround(moment)
  chart.addEventListener('click', onClick)
  chart.addEventListener('refreshed', onRefreshed)
  enableKeys()
  enablePointers()
  showMoment()
  draw()
}

const viewAround = (at) => ({ from: Math.max(data.from, at - momentMillis), to: Math.min(data.to, at + momentMillis) })

/** Of a running session: a view that reaches to its end goes on with it, and any other one stays. */
function onRefreshed(event) {
  event.preventDefault()
  const fresh = event.detail
  part('shown').ariaLive = 'off'
  if (!fresh.dataset.evening) return
  const [{ from, to }, { from: shownFrom, to: shownTo }] = [data, view]
  data = JSON.parse(fresh.dataset.evening)
  for (const name of ['peak', 'second-label'])
    part(name).textContent = fresh.querySelector(`[data-${name}]`).textContent
  for (const { dataset } of fresh.querySelectorAll('[data-series]'))
    chart.querySelector(`[data-series="${dataset.series}"]`).dataset.text = dataset.text
  const label = fresh.querySelector('svg').getAttribute('aria-label')
  chart.querySelector('svg').setAttribute('aria-label', label)
  if (shownFrom <= from && shownTo >= to) show(data.from, data.to)
  else if (shownTo >= to) move((data.to - to) / (shownTo - shownFrom))
  else draw()
}

/** Shows this part of the session, or what there is of it. */
function show(from, to) {
  const span = Math.min(data.to - data.from, Math.max(viewMillisMin, to - from))
  const start = Math.min(Math.max(data.from, (from + to - span) / 2), data.to - span)
  view = { from: start, to: start + span }
  draw()
}

/** @param {number} place that stays where it is: 0 for the left edge, 1 for the right one. */
function zoom(factor, place = 0.5) {
  const span = view.to - view.from
  const at = view.from + place * span
  show(at - place * span * factor, at + (1 - place) * span * factor)
}

/** @param {number} share of what is shown. */
function move(share) {
  const by = share * (view.to - view.from)
  show(view.from + by, view.to + by)
}

/** @param {number} from and `to` are places on the chart, from 0 to 1. */
function select(from, to) {
  const span = view.to - view.from
  show(view.from + from * span, view.from + to * span)
}

/** What an act shows is announced, and what a refresh shows is not. */
function act(name) {
  part('shown').ariaLive = 'polite'
  acts[name]()
}

const acts = {
  in: () => zoom(0.5),
  out: () => zoom(2),
  earlier: () => move(-0.25),
  later: () => move(0.25),
  reset: () => show(data.from, data.to),
}

function onClick(event) {
  const button = event.target.closest('[data-zoom]')
  if (button) act(button.dataset.zoom)
  const choice = event.target.closest('[data-series]')
  if (!choice || event.ctrlKey || event.metaKey || event.shiftKey) return
  event.preventDefault()
  second = choice.dataset.series
  for (const each of chart.querySelectorAll('[data-series]')) each.removeAttribute('aria-current')
  choice.setAttribute('aria-current', 'true')
  part('second-label').textContent = choice.dataset.text
  history.replaceState(null, '', choice.href)
  draw()
}

const actsOfKeys = {
  ...{ '+': 'in', '=': 'in', '-': 'out', '−': 'out', ArrowLeft: 'earlier', ArrowRight: 'later' },
  ...{ ArrowUp: 'in', ArrowDown: 'out', Home: 'reset', 0: 'reset' },
}

function enableKeys() {
  plot.tabIndex = 0
  plot.setAttribute('role', 'group')
  plot.setAttribute('aria-label', 'Chart that can be zoomed')
  plot.setAttribute('aria-describedby', 'evening-keys')
  plot.addEventListener('keydown', (event) => {
    const name = event.ctrlKey || event.metaKey || event.altKey ? undefined : actsOfKeys[event.key]
    if (!name) return
    event.preventDefault()
    act(name)
  })
}

const x = (millis) => Math.round(((millis - view.from) / (view.to - view.from)) * width * 10) / 10

function draw() {
  const lines = drawLines(data.bitrate)
  part('area').replaceChildren(...lines.map((line) => shape('polygon', { points: closeArea(line) })))
  part('lines').replaceChildren(...lines.map(polyline))
  part('second').replaceChildren(...(second ? drawLines(data.others[second]).map(polyline) : []))
  const shown = data.events.filter(([at]) => at >= view.from && at <= view.to)
  part('marks').replaceChildren(...shown.map(([at, tone, text]) => mark(at, tone, text)))
  part('moment').replaceChildren(...(moment === undefined ? [] : [mark(moment, 'moment', 'The moment of the address')]))
  showTimes()
  chart.dataset.from = Math.round(view.from)
  chart.dataset.to = Math.round(view.to)
}

function drawLines(values) {
  const first = Math.max(0, Math.floor((view.from - data.startAt) / slotMillis) - 1)
  const last = Math.min(values.length - 1, Math.ceil((view.to - data.startAt) / slotMillis) + 1)
  const peak = values.reduce((high, value) => Math.max(high, value ?? 0), 1)
  const place = ([slot, value]) =>
    `${x(data.startAt + slot * slotMillis)},${Math.round(height - (value / peak) * height)}`
  return reduceToLines(values, first, last).map((line) => {
    const drawn = line.length === 1 ? [line[0], [line[0][0] + 1, line[0][1]]] : line
    return drawn.map(place).join(' ')
  })
}

function mark(at, tone, text) {
  const line = shape('line', { class: tone, x1: x(at), x2: x(at), y1: -2, y2: height + 2, ...unscaled })
  line.append(shape('title', {}, text))
  return line
}

/** `site.js` writes the times in the zone of the visitor. */
function showTimes() {
  const span = view.to - view.from
  const ticks = [...chart.querySelectorAll('.evening-ticks time')]
  ticks.forEach((tick, index) => {
    tick.dateTime = toIso(view.from + (index / (ticks.length - 1)) * span)
    tick.dataset.local = span < secondsTicksMaxMillis ? 'hms' : 'hm'
  })
  const local = span < secondsTicksMaxMillis ? 'second' : 'minute'
  part('shown').replaceChildren(time(view.from, local), ' to ', time(view.to, local))
  document.dispatchEvent(new Event('parts-replaced'))
}

function showMoment() {
  if (moment === undefined) return
  const text = part('moment-text')
  text.replaceChildren(time(moment, 'second'), `: ${nameNearest(moment)}`)
  text.hidden = false
}

/** The part that a drag selects. Without places: nothing. */
function showSelection(from, to) {
  const svg = chart.querySelector('svg')
  svg.querySelector('.selection')?.remove()
  if (from === undefined) return
  svg.append(
    shape('rect', { class: 'selection', x: from * width, width: (to - from) * width, y: -2, height: height + 4 }),
  )
}

/** Where the fingers are, from 0 at the left edge to 1 at the right one, by pointer. */
const touches = new Map()
/** Where a drag began. */
let dragFrom

/** A mouse or a pen selects what to zoom into, a finger moves the view, and two zoom it. */
function enablePointers() {
  plot.addEventListener('pointerdown', (event) => {
    if (event.pointerType === 'touch') touches.set(event.pointerId, placeOf(event))
    else if (event.button === 0) {
      dragFrom = placeOf(event)
      plot.setPointerCapture(event.pointerId)
    }
  })
  plot.addEventListener('pointermove', (event) => {
    if (dragFrom !== undefined) showSelection(...inOrder(dragFrom, placeOf(event)))
    else if (touches.has(event.pointerId)) moveTouch(event)
  })
  plot.addEventListener('pointerup', endPointer)
  plot.addEventListener('pointercancel', endPointer)
}

function placeOf({ clientX }) {
  const { left, width: plotWidth } = plot.getBoundingClientRect()
  return Math.min(1, Math.max(0, (clientX - left) / plotWidth))
}

const inOrder = (a, b) => (a < b ? [a, b] : [b, a])
const spread = ([a, b]) => Math.max(0.02, Math.abs(a - b))

function moveTouch(event) {
  const place = placeOf(event)
  const spreadBefore = spread([...touches.values()])
  if (touches.size === 1) move(touches.get(event.pointerId) - place)
  touches.set(event.pointerId, place)
  if (touches.size !== 2) return
  const [a, b] = touches.values()
  zoom(spreadBefore / spread([a, b]), (a + b) / 2)
}

function endPointer(event) {
  touches.delete(event.pointerId)
  if (dragFrom === undefined) return
  const [from, to] = inOrder(dragFrom, placeOf(event))
  dragFrom = undefined
  showSelection()
  if (event.type === 'pointerup' && (to - from) * plot.clientWidth >= dragPixelsMin) select(from, to)
}

/** The first time in the session that clocks of the visitor showed this; undefined when there is none. */
function findClock(clock) {
  if (clock === undefined) return undefined
  const { from, to } = data
  const [hour, minute, second = 0] = clock.split(':').map(Number)
  const day = new Date(from)
  day.setHours(hour, minute, second, 0)
  for (; day.getTime() <= to; day.setDate(day.getDate() + 1)) {
    const at = day.getTime()
    // A minute names all of its seconds, also those after the beginning of the session in that minute.
    if (at >= from) return at
    if (clock.split(':').length === 2 && at + 60_000 > from) return from
  }
  return undefined
}

function nameNearest(at) {
  const nearest = data.events
    .map((event) => [Math.abs(event[0] - at), event])
    .filter(([distance]) => distance <= momentMillis)
    .sort(([a], [b]) => a - b)
    .slice(0, 3)
    .map(([, event]) => event)
    .sort(([a], [b]) => a - b)
  const texts = nearest.map(([eventAt, , text]) => `${text} (${formatDistance(eventAt, at)})`)
  return texts.join(' · ') || 'nothing happened within ten minutes.'
}

/** As in `evening-moment.ts`. */
function formatDistance(eventAt, at) {
  const seconds = Math.round(Math.abs(eventAt - at) / 1000)
  if (seconds === 0) return 'at this moment'
  const [minutes, rest] = [Math.floor(seconds / 60), seconds % 60]
  const length = [minutes > 0 ? `${minutes} min` : '', rest > 0 ? `${rest} s` : ''].filter(Boolean).join(' ')
  return `${length} ${eventAt < at ? 'earlier' : 'later'}`
}

const toIso = (millis) => new Date(millis).toISOString()

function time(at, local) {
  const element = document.createElement('time')
  element.dateTime = toIso(at)
  element.dataset.local = local
  return element
}

const unscaled = { 'vector-effect': 'non-scaling-stroke' }
const polyline = (points) => shape('polyline', { points, ...unscaled })

function shape(name, attributes, text) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name)
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value)
  if (text) element.textContent = text
  return element
}

function closeArea(line) {
  const xOf = (point) => point.slice(0, point.indexOf(','))
  const points = line.split(' ')
  return `${xOf(points[0])},${height} ${line} ${xOf(points.at(-1))},${height}`
}

if (globalThis.document) {
  document.addEventListener('parts-replaced', start)
  start()
}
