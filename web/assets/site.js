// Enhancements of all pages. Everything works without this script too.

/** Milliseconds that a page must have been in front before its decision buttons work. */
const deliberationMillis = 700

/** Milliseconds within which a form is not submitted again. */
const resubmitMillis = 5000

/** When each countdown ends, in the time of `performance.now()`. */
const endTimes = new WeakMap()

for (const form of document.querySelectorAll('form.fields, form[data-once]')) preventResubmit(form)
for (const button of document.querySelectorAll('button[data-shows]')) enablePasswordToggle(button)
updateCountdowns()
setInterval(updateCountdowns, 1000)
showLocalTimes()
// Sent by scripts that have replaced parts of the page.
document.addEventListener('parts-replaced', showLocalTimes)
for (const choice of document.querySelectorAll('[data-deliberate]')) delayDecision(choice)

/**
 * Ignores a double click: the reply to a second request, such as that the email address is taken, would hide the first.
 * @param {HTMLFormElement} form
 */
function preventResubmit(form) {
  let submittedAt = -resubmitMillis
  form.addEventListener('submit', (event) => {
    if (event.timeStamp - submittedAt < resubmitMillis) event.preventDefault()
    else submittedAt = event.timeStamp
  })
}

/** @param {HTMLButtonElement} button */
function enablePasswordToggle(button) {
  const input = document.getElementById(button.dataset.shows)
  const setVisible = (isVisible) => {
    input.type = isVisible ? 'text' : 'password'
    button.firstChild.textContent = isVisible ? 'Hide' : 'Show'
  }
  button.hidden = false
  button.addEventListener('click', () => setVisible(input.type === 'password'))
  // Browsers save the values of submitted text fields for autocompletion.
  input.form.addEventListener('submit', () => setVisible(false))
}

/**
 * Counts from the seconds left when the page was rendered, since clocks differ. `relays.js` may add countdowns later.
 */
function updateCountdowns() {
  for (const time of document.querySelectorAll('time[data-expired-text]')) {
    if (!endTimes.has(time)) endTimes.set(time, performance.now() + Number(time.dataset.secondsLeft) * 1000)
    const seconds = Math.ceil((endTimes.get(time) - performance.now()) / 1000)
    const text = seconds > 0 ? formatTimeLeft(seconds) : time.dataset.expiredText
    if (time.textContent !== text) time.textContent = text
  }
}

/** Rewrites the server's UTC times in the visitor's time zone, whose name takes the place of "UTC". */
function showLocalTimes() {
  for (const time of document.querySelectorAll('time[data-local]')) {
    const text = formatLocalTime(new Date(time.dateTime), time.dataset.local)
    if (time.dataset.local === 'title') time.title = text
    else if (time.textContent !== text) time.textContent = text
  }
}

function formatLocalTime(at, format) {
  if (format === 'hm' || format === 'hms')
    return at.toLocaleTimeString('en-GB', {
      ...{ hour: '2-digit', minute: '2-digit', second: format === 'hms' ? '2-digit' : undefined },
    })
  const month = format === 'day' ? 'long' : 'short'
  const day = at.toLocaleDateString('en-GB', { day: 'numeric', month, year: 'numeric' })
  if (format === 'day') return `${day} (${nameZone(at)})`
  const second = format === 'second' || format === 'title' ? '2-digit' : undefined
  const clock = at.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit', second, timeZoneName: 'short' })
  return format === 'clock' && at.toDateString() === new Date().toDateString() ? clock : `${day}, ${clock}`
}

/** `CET`. The zone of a place has several names in a year. */
function nameZone(at) {
  const parts = new Intl.DateTimeFormat('en-GB', { timeZoneName: 'short' }).formatToParts(at)
  return parts.find(({ type }) => type === 'timeZoneName').value
}

/** As `formatTimeLeft` of `time-text.tsx`. */
function formatTimeLeft(seconds) {
  const minutes = Math.floor(seconds / 60)
  if (minutes >= 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
  if (minutes === 0) return seconds === 1 ? '1 second' : `${seconds} seconds`
  return `${minutes}:${String(seconds % 60).padStart(2, '0')} minutes`
}

/**
 * Disables the buttons until the page has been in front for a moment. Prevents clickjacking by double click: another
 * site opens this page under the pointer between the two clicks.
 * @param {HTMLElement} choice
 */
function delayDecision(choice) {
  const buttons = [...choice.querySelectorAll('button')]
  let timer
  const wait = () => {
    for (const button of buttons) button.setAttribute('aria-disabled', 'true')
    clearTimeout(timer)
    timer = setTimeout(() => {
      for (const button of buttons) button.removeAttribute('aria-disabled')
    }, deliberationMillis)
  }
  choice.addEventListener('submit', (event) => {
    if (event.submitter?.getAttribute('aria-disabled') === 'true') event.preventDefault()
  })
  window.addEventListener('focus', wait)
  document.addEventListener('visibilitychange', wait)
  wait()
}
