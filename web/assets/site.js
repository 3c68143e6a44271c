// What pages do beyond what they do without script.

/** Milliseconds that a page must have been in front before a decision on it counts. */
const lookMillis = 700

/** Milliseconds within which a form that was sent is not sent again. */
const sendMillis = 5000

for (const form of document.querySelectorAll('form.fields')) sendOnce(form)
for (const button of document.querySelectorAll('button[data-shows]')) showPassword(button)
for (const time of document.querySelectorAll('time[data-until]')) countDown(time)
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

/**
 * By the time that was left when the page came, since clocks differ.
 * @param {HTMLTimeElement} time
 */
function countDown(time) {
  const until = performance.now() + Number(time.dataset.secondsLeft) * 1000
  const tick = () => {
    const seconds = Math.ceil((until - performance.now()) / 1000)
    if (seconds <= 0) {
      clearInterval(ticking)
      time.textContent = time.dataset.until
    } else time.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')} minutes`
  }
  const ticking = setInterval(tick, 1000)
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
