/**
 * Keeps the relays page up to date. Polls the API for the state of the relays, and on a change fetches the page and
 * replaces the parts that differ, so that only the server renders relays. Changes that arrive over a WebSocket cause a
 * poll at once; while it is open the page polls rarely. Figures of a stream are written into the page without fetching
 * it.
 */

const fastPollMillis = 3000
const slowPollMillis = 10_000
const pollMillisWithSocket = 30_000
const retryMillisMax = 60_000
/** The plan's alerts can change while no relay does, so the page is fetched at least this often. */
const pageAgeMillisMax = 300_000
/** While video comes in the page is fetched this often for its charts, which have a point per 10 seconds. */
const chartAgeMillisMax = 10_000
/** Changes within this time share one fetch of the page. */
const pageAgeMillisMin = 500
/** More than the site's own timeout, so that it only ends requests whose reply was lost. */
const pollTimeoutMillis = 45_000

/** By id: each live session as it was seen last, and the title of the page without what the streams do. */
let shownSessions = new Map()
const plainTitle = document.title.replace(/^[●▲] .*? · /u, '')

/** The steps of connection kits that the visitor has opened or closed, or that were closed when they were done. */
const usedKits = new Set()

const list = document.querySelector('[data-relays]')
const announcements = document.querySelector('[data-announcements]')
const freshness = document.querySelector('[data-freshness]')

let timer = 0
let isPolling = false
let isPollDue = false
let socket
let failures = 0
let hasRenewed = false
let updatedAt = new Date()
let pageFetchedAt = performance.now()

/** Polls now, or after the poll that is running, unless the page is hidden, and schedules the next poll. */
async function poll() {
  isPollDue = isPolling
  if (isPolling) return
  clearTimeout(timer)
  if (document.hidden) return
  isPolling = true
  const timeout = new AbortController()
  const timeoutTimer = setTimeout(() => timeout.abort(), pollTimeoutMillis)
  const waitMillis = await pollOnce(timeout.signal).catch(() => recordFailure())
  clearTimeout(timeoutTimer)
  isPolling = false
  timer = setTimeout(poll, isPollDue && failures === 0 ? 0 : waitMillis)
}

/** Resolves to the milliseconds until the next poll. */
async function pollOnce(signal) {
  const response = await fetch('/api/v1/relay/active?view=dock&watch=1', { cache: 'no-store', signal })
  if (response.status === 401) return renewOnce(signal)
  if (!response.ok) return recordFailure(Number(response.headers.get('retry-after')) * 1000)
  const { sessions } = await response.json()
  sessions.forEach(showFigures)
  showTitle(sessions)
  if (hasChanged(sessions) || isPageOld(sessions)) await updatePage(signal)
  hasRenewed = false
  failures = 0
  updatedAt = new Date()
  setText(freshness, '')
  connectSocket()
  if (socket.readyState === WebSocket.OPEN) return pollMillisWithSocket
  return sessions.some(({ state }) => state === 'provisioning' || state === 'grace') ? fastPollMillis : slowPollMillis
}

const pageAge = () => performance.now() - pageFetchedAt

/** What an open checklist waits for may happen elsewhere, such as in a mail program. */
const hasOpenSteps = () => document.querySelector('[data-step][data-done="false"]') !== null

const isPageOld = (sessions) =>
  pageAge() >
  (hasOpenSteps() || sessions.some(({ ingest }) => ingest?.publishing) ? chartAgeMillisMax : pageAgeMillisMax)

/** Called after a successful poll, since the handshake needs a valid access token. */
function connectSocket() {
  if (socket) return
  socket = new WebSocket(`${location.origin.replace(/^http/, 'ws')}/api/v1/relay/ws`, 'svc.relay.v1')
  socket.addEventListener('message', ({ data }) => {
    const { type, session } = JSON.parse(data)
    if (type !== 'session' || failures > 0) return
    showFigures(session)
    showTitle([...shownSessions.values()].filter(({ session_id }) => session_id !== session.session_id).concat(session))
    if (isOutdated(session) || isPageOld([session])) pollSoon()
  })
  socket.addEventListener('close', () => {
    socket = undefined
  })
  // The next poll may be far away. With jitter, because a process that stops closes the sockets of many pages.
  socket.addEventListener('open', ({ target }) => target.addEventListener('close', () => pollWithin(fastPollMillis)))
}

/** Polls now, or when the last fetch of the page is long enough ago. */
function pollSoon() {
  const waitMillis = pageAgeMillisMin - pageAge()
  if (waitMillis <= 0 || isPolling) return poll()
  clearTimeout(timer)
  timer = setTimeout(poll, waitMillis)
}

function pollWithin(millisMax) {
  if (failures > 0) return
  clearTimeout(timer)
  timer = setTimeout(poll, millisMax * Math.random())
}

/** The access token expires every few minutes. */
async function renewOnce(signal) {
  const response = hasRenewed ? undefined : await fetch('/api/v1/auth/refresh', { method: 'POST', signal })
  if (response && !response.ok && response.status !== 401) return recordFailure()
  hasRenewed = true
  if (response?.ok) return 0
  // Signed out: the page redirects to the login page. A reload could submit the form again that this page came from.
  location.assign('/relays')
  return slowPollMillis
}

/** Resolves to the milliseconds until the next poll: at least `Retry-After`, and exponential backoff. */
function recordFailure(retryAfterMillis = 0) {
  failures += 1
  const clock = updatedAt.toLocaleTimeString('en-GB', {
    ...{ hour: '2-digit', minute: '2-digit', second: '2-digit', timeZoneName: 'short' },
  })
  setText(freshness, `Last updated at ${clock}. Trying again…`)
  return Math.max(retryAfterMillis || 0, Math.min(fastPollMillis * 2 ** (failures - 1), retryMillisMax))
}

function hasChanged(sessions) {
  const shown = [...list.querySelectorAll('article[data-session]')]
  return shown.length !== sessions.length || sessions.some(isOutdated)
}

/** Whether the page shows another state of the relay; see the version in `relays-session.tsx`. */
function isOutdated(session) {
  const { session_id, state, reason, grace_ends_at, relay_host_masked, ending_soon, engine, ingest, signal } = session
  if (state === 'stopped') return findPart(document, `status-${session_id}`) !== null
  const { publishing, since } = ingest ?? {}
  const { phone, relay, player } = signal ?? {}
  const parts = [phone, relay, player].flatMap((part) => [part?.level, part?.code, part?.since])
  const version = [state, reason, grace_ends_at, relay_host_masked, ending_soon, engine, publishing, since].concat(
    parts,
  )
  return !hasVersion(`status-${session_id}`, version)
}

/** The present figures of a stream, formatted as in `relays-signal.tsx`. */
function showFigures({ session_id, ingest }) {
  const part = findPart(document, `status-${session_id}`)
  if (!ingest?.publishing || !part) return
  const { bitrate_kbps: kbps, loss_pct: loss = 0, repeat_pct: repeats = 0 } = ingest
  setTextOf(part, '[data-bitrate]', formatBitrate(kbps))
  setTextOf(part, '[data-links]', formatLinks(ingest))
  setTextOf(part, '[data-loss]', `${Math.round(loss)}`)
  setTextOf(part, '[data-repeats]', repeats > 5 ? `, ${Math.round(repeats)} of 100 packets repeated` : '')
}

function formatLinks({ links, usual_links: usual = 0 }) {
  if (links === 0) return ''
  return usual > links ? `over ${links} of ${usual} links` : `over ${links === 1 ? '1 link' : `${links} links`}`
}

/** What the tab says while another one is in front; `titleOf` of `relays.tsx` writes it first. */
function showTitle(sessions) {
  const live = sessions.filter(({ state }) => state !== 'stopped')
  shownSessions = new Map(live.map((session) => [session.session_id, session]))
  const isGone = ({ signal }) => ['lost', 'silent'].includes(signal?.relay.code) || signal?.phone.code === 'lost'
  const kbps = live.reduce((sum, { ingest }) => sum + (ingest?.publishing ? ingest.bitrate_kbps : 0), 0)
  const news = live.some(isGone) ? '▲ no video' : kbps > 0 ? `● ${formatBitrate(kbps)}` : ''
  const title = news === '' ? plainTitle : `${news} · ${plainTitle}`
  if (document.title !== title) document.title = title
}

const formatBitrate = (kbps) => (kbps < 1000 ? `${kbps} kbps` : `${(kbps / 1000).toFixed(1)} Mbps`)

const hasVersion = (part, fields) =>
  findPart(document, part)?.dataset.version === fields.map((field) => field ?? '').join(' ')

async function updatePage(signal) {
  const response = await fetch('/relays', { cache: 'no-store', signal })
  if (!response.ok || new URL(response.url).pathname !== '/relays') throw new Error('the relays page is unavailable')
  const fetched = new DOMParser().parseFromString(await response.text(), 'text/html')
  const fetchedList = fetched.querySelector('[data-relays]')
  for (const relay of children(list)) if (!findSame(fetchedList, relay)) removeRelay(relay)
  for (const relay of children(fetchedList)) if (!findSame(list, relay)) addRelay(relay)
  for (const part of fetched.querySelectorAll('[data-part]')) replacePart(part)
  followKits()
  document.dispatchEvent(new Event('parts-replaced'))
  pageFetchedAt = performance.now()
}

const children = (parent) => [...parent.querySelectorAll(':scope > [data-session]')]
const findSame = (parent, child) => children(parent).find((relay) => relay.dataset.session === child.dataset.session)
const findPart = (root, name) => root.querySelector(`[data-part="${CSS.escape(name)}"]`)

function removeRelay(relay) {
  const hadFocus = relay.contains(document.activeElement)
  relay.remove()
  if (relay.dataset.name) announce(`${relay.dataset.name} stopped`)
  if (hadFocus) document.getElementById('relays').focus()
}

function addRelay(relay) {
  list.append(document.importNode(relay, true))
  if (relay.dataset.name) announceState(relay)
}

/** Keeps the focus where it was, and leaves a form alone while it is being filled in. */
function replacePart(fetched) {
  const old = findPart(document, fetched.dataset.part)
  if (!old || old.dataset.version === fetched.dataset.version) return
  const focused = old.contains(document.activeElement) ? document.activeElement : undefined
  if (focused?.matches('input, select') || isFilledIn(old, fetched)) return
  const replacement = document.importNode(fetched, true)
  for (const kit of replacement.querySelectorAll('.kit')) kit.open = document.getElementById(kit.id)?.open ?? kit.open
  old.replaceWith(replacement)
  if (focused) findFocusTarget(focused, replacement).focus()
  const [oldText, newText] = [old, replacement].map((part) => part.querySelector('[data-announce]')?.textContent)
  if (newText && newText !== oldText) announce(newText)
  const [oldState, newState] = [old, replacement].map((part) => part.querySelector('[data-relay-state]')?.textContent)
  if (oldState !== newState) announceState(replacement.closest('article'))
}

/** Whether the visitor has changed a form that the new part also has. */
const isFilledIn = (old, fetched) =>
  fetched.querySelector('form.fields') !== null &&
  [...old.querySelectorAll('form.fields input')].some(
    (input) => input.value !== input.defaultValue || input.checked !== input.defaultChecked,
  )

/**
 * Each step of a connection kit is open until it is done, unless the visitor has opened or closed it or is using it. A
 * step that was done stays closed: OBS may be closed for a while in the evening.
 */
function followKits() {
  for (const tick of list.querySelectorAll('[data-kit-state="open"], [data-kit-state="done"]')) {
    const kit = tick.closest('.kit')
    const isDone = tick.dataset.kitState === 'done'
    if (usedKits.has(kit.id) || (isDone && kit.contains(document.activeElement))) continue
    kit.open = !isDone
    if (isDone) usedKits.add(kit.id)
  }
}

const findFocusTarget = (focused, replacement) =>
  document.getElementById(focused.id) ?? replacement.querySelector('h2, summary') ?? document.getElementById('relays')

const announceState = (article) =>
  announce(`${article.dataset.name}: ${article.querySelector('[data-relay-state]').textContent}`)

const announce = (text) => setText(announcements, text)

/** Screen readers announce a status again when its text is set, even to the same text. */
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text
}

/** Not every text has each figure. */
function setTextOf(part, selector, text) {
  const element = part.querySelector(selector)
  if (element) setText(element, text)
}

document.addEventListener('click', ({ target }) => {
  const kit = target instanceof Element && target.closest('.kit > summary')
  if (kit) usedKits.add(kit.parentElement.id)
})
/** Ignores a second click on the button of a form that is being sent. */
document.addEventListener('submit', (event) => {
  if (event.target.ariaBusy === 'true') event.preventDefault()
  event.target.ariaBusy = 'true'
})
// The browser may restore the page from its back/forward cache.
addEventListener('pageshow', () => {
  for (const form of document.forms) form.ariaBusy = null
})
// An open socket keeps a page out of the back/forward cache.
addEventListener('pagehide', () => socket?.close())
document.addEventListener('visibilitychange', poll)
addEventListener('online', poll)

timer = setTimeout(poll, fastPollMillis)
