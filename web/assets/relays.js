/**
 * Keeps the relays page up to date. It asks how the relays are, and when something has changed it fetches the page itself and
 * takes over the parts that differ: what a relay looks like is written down once, on the server.
 */

const quickMillis = 3000
const slowMillis = 10_000
const lateMillisMax = 60_000
/** What the page says of the plan changes without a relay that does. */
const wholeMillisMax = 300_000
/** Longer than the site takes for an answer: what comes no more was lost on its way. */
const turnMillisMax = 45_000

const list = document.querySelector('[data-relays]')
const news = document.querySelector('[data-news]')
const freshness = document.querySelector('[data-freshness]')

let timer = 0
let isAsking = false
let failures = 0
let hasRenewed = false
let upToDateAt = new Date()
let wholeAt = performance.now()

/** Asks now, unless it is being asked or nobody looks, and then again when it is due. */
async function ask() {
  clearTimeout(timer)
  if (isAsking || document.hidden) return
  isAsking = true
  const turn = new AbortController()
  const givingUp = setTimeout(() => turn.abort(), turnMillisMax)
  const waitMillis = await oneTurn(turn.signal).catch(() => late())
  clearTimeout(givingUp)
  isAsking = false
  timer = setTimeout(ask, waitMillis)
}

/** Answers how long to wait for the next one, in milliseconds. */
async function oneTurn(signal) {
  const answer = await fetch('/api/v1/relay/active?view=dock', { cache: 'no-store', signal })
  if (answer.status === 401) return renewOnce(signal)
  if (!answer.ok) return late(Number(answer.headers.get('retry-after')) * 1000)
  const { sessions } = await answer.json()
  if (hasChanged(sessions) || performance.now() - wholeAt > wholeMillisMax) await takeOver(signal)
  hasRenewed = false
  failures = 0
  upToDateAt = new Date()
  say(freshness, '')
  return sessions.some(({ state }) => state === 'provisioning' || state === 'grace') ? quickMillis : slowMillis
}

/** The access token ends every few minutes. Another tab may have renewed the sign-in already, which is as good. */
async function renewOnce(signal) {
  const answer = hasRenewed ? undefined : await fetch('/api/v1/auth/refresh', { method: 'POST', signal })
  if (answer && !answer.ok && answer.status !== 401) return late()
  hasRenewed = true
  if (answer?.ok) return 0
  // Signed out: the page leads to where one signs in. Not by a reload, which would send the form that led here once more.
  location.assign('/relays')
  return slowMillis
}

function late(atLeastMillis = 0) {
  failures += 1
  const clock = upToDateAt.toLocaleTimeString(undefined, { timeStyle: 'medium' })
  say(freshness, `Not up to date since ${clock}.`)
  return Math.max(atLeastMillis || 0, Math.min(quickMillis * 2 ** (failures - 1), lateMillisMax))
}

/** Whether the relays, or one of them, are others than the page shows; see `versionOf` of the page. */
function hasChanged(sessions) {
  const shown = [...list.querySelectorAll('article[data-session]')]
  if (shown.length !== sessions.length) return true
  return sessions.some(({ session_id, state, reason, grace_ends_at, relay_host_masked }) => {
    const version = [state, reason, grace_ends_at, relay_host_masked].map((part) => part ?? '').join(' ')
    return partNamed(document, `now-${session_id}`)?.dataset.version !== version
  })
}

async function takeOver(signal) {
  const answer = await fetch('/relays', { cache: 'no-store', signal })
  if (!answer.ok || new URL(answer.url).pathname !== '/relays') throw new Error('the page is not to be had')
  const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html')
  const freshList = fresh.querySelector('[data-relays]')
  for (const gone of children(list)) if (!sameIn(freshList, gone)) remove(gone)
  for (const come of children(freshList)) if (!sameIn(list, come)) add(come)
  for (const part of fresh.querySelectorAll('[data-part]')) exchange(part)
  localTimes()
  wholeAt = performance.now()
}

const children = (parent) => [...parent.querySelectorAll(':scope > [data-session]')]
const sameIn = (parent, child) => children(parent).find((one) => one.dataset.session === child.dataset.session)
const partNamed = (within, name) => within.querySelector(`[data-part="${CSS.escape(name)}"]`)

function remove(gone) {
  const hadFocus = gone.contains(document.activeElement)
  gone.remove()
  if (gone.dataset.name) say(news, `“${gone.dataset.name}” has stopped.`)
  if (hadFocus) document.getElementById('relays').focus()
}

function add(come) {
  list.append(document.importNode(come, true))
  if (come.dataset.name) tellState(come)
}

/** A part that is in use keeps its reader: the focus goes on where it was, and a form that is being filled in stays. */
function exchange(fresh) {
  const old = partNamed(document, fresh.dataset.part)
  if (!old || old.dataset.version === fresh.dataset.version) return
  const focused = old.contains(document.activeElement) ? document.activeElement : undefined
  if (focused?.matches('input, select')) return
  const replacement = document.importNode(fresh, true)
  old.replaceWith(replacement)
  if (focused) placeAfter(focused, replacement).focus()
  const [told, tells] = [old, replacement].map((part) => part.querySelector('[data-tells]')?.textContent)
  if (tells && tells !== told) say(news, tells)
  const [was, is] = [old, replacement].map((part) => part.querySelector('[data-state]')?.textContent)
  if (was !== is) tellState(replacement.closest('article'))
}

const placeAfter = (focused, replacement) =>
  document.getElementById(focused.id) ?? replacement.querySelector('h2, summary') ?? document.getElementById('relays')

const tellState = (article) =>
  say(news, `“${article.dataset.name}”: ${article.querySelector('[data-state]').textContent}`)

/** Unchanged text is left alone, so that it is not read out again. */
function say(place, text) {
  if (place.textContent !== text) place.textContent = text
}

/** The server does not know the reader's clock, and `a minute ago` does not stay true. */
function localTimes() {
  const today = new Date().toDateString()
  for (const time of list.querySelectorAll('time[datetime]')) {
    const at = new Date(time.dateTime)
    const day = at.toDateString() === today ? {} : { dateStyle: 'medium' }
    say(time, at.toLocaleString(undefined, { ...day, timeStyle: 'short' }))
  }
}

const ends = new WeakMap()

/** By the time that was left when the page came, since clocks differ. */
function countDown() {
  for (const timed of list.querySelectorAll('[data-seconds-left]')) {
    if (!ends.has(timed)) ends.set(timed, performance.now() + Number(timed.dataset.secondsLeft) * 1000)
    const left = Math.max(0, Math.ceil((ends.get(timed) - performance.now()) / 1000))
    say(timed, `${Math.floor(left / 60)}:${String(left % 60).padStart(2, '0')}`)
  }
}

/** A second tap is not a second wish. */
document.addEventListener('submit', (event) => {
  if (event.target.ariaBusy === 'true') event.preventDefault()
  event.target.ariaBusy = 'true'
})
// Coming back by the browser's own memory of the page.
addEventListener('pageshow', () => {
  for (const form of document.forms) form.ariaBusy = null
})
document.addEventListener('visibilitychange', ask)
addEventListener('online', ask)

localTimes()
countDown()
setInterval(countDown, 1000)
timer = setTimeout(ask, quickMillis)
