// What pages do beyond what they do without script.

/** Milliseconds that a page must have been in front before a decision on it counts. */
const lookMillis = 700

/** Milliseconds within which a form that was sent is not sent again. */
const sendMillis = 5000

/** When each countdown of the page ends, by `performance.now()`. */
const deadlines = new WeakMap()

for (const form of document.querySelectorAll('form.fields, form[data-once]')) sendOnce(form)
for (const button of document.querySelectorAll('button[data-shows]')) showPassword(button)
countDown()
setInterval(countDown, 1000)
for (const choice of document.querySelectorAll('[data-deliberate]')) decideDeliberately(choice)

/**
 * Two taps are no two wishes: the second answer would say that the address is taken, or the link used, and hide the first.
 * @param {HTMLFormElement} form
 */
function sendOnce(form) {
  let sentAt = -sendMillis
  form.addEventListener('submit', (event) => {
    if (event.timeStamp - sentAt < sendMillis) event.preventDefault()
    else sentAt = event.timeStamp
  })
}

/** @param {HTMLButtonElement} button */
function showPassword(button) {
  const input = document.getElementById(button.dataset.shows)
  const show = (isShown) => {
    input.type = isShown ? 'text' : 'password'
    button.firstChild.textContent = isShown ? 'Hide' : 'Show'
  }
  button.hidden = false
  button.addEventListener('click', () => show(input.type === 'password'))
  // What is sent as text is offered again by browsers that remember texts.
  input.form.addEventListener('submit', () => show(false))
}

/** By the time that was left when it came, since clocks differ. Another script may put a deadline there later. */
function countDown() {
  for (const time of document.querySelectorAll('time[data-until]')) {
    if (!deadlines.has(time)) deadlines.set(time, performance.now() + Number(time.dataset.secondsLeft) * 1000)
    const seconds = Math.ceil((deadlines.get(time) - performance.now()) / 1000)
    const text = seconds > 0 ? inWords(seconds) : time.dataset.until
    if (time.textContent !== text) time.textContent = text
  }
}

function inWords(seconds) {
  const minutes = Math.floor(seconds / 60)
  if (minutes >= 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
  return `${minutes}:${String(seconds % 60).padStart(2, '0')} minutes`
}

/**
 * Another site can have somebody double-click, and slip this page under the second click. So its buttons do nothing until
 * the page has been in front for a moment.
 * @param {HTMLElement} choice
 */
function decideDeliberately(choice) {
  const buttons = [...choice.querySelectorAll('button')]
  let waiting
  const wait = () => {
    for (const button of buttons) button.setAttribute('aria-disabled', 'true')
    clearTimeout(waiting)
    waiting = setTimeout(() => {
      for (const button of buttons) button.removeAttribute('aria-disabled')
    }, lookMillis)
  }
  choice.addEventListener('submit', (event) => {
    if (event.submitter?.getAttribute('aria-disabled') === 'true') event.preventDefault()
  })
  window.addEventListener('focus', wait)
  document.addEventListener('visibilitychange', wait)
  wait()
}
