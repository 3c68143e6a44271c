// The page of a connection. Names a file that is too large before it is sent.

for (const input of document.querySelectorAll('input[data-bytes-max]')) {
  input.addEventListener('change', () => {
    const isTooLarge = [...input.files].some(({ size }) => size > Number(input.dataset.bytesMax))
    input.setCustomValidity(isTooLarge ? input.dataset.tooLarge : '')
    input.reportValidity()
  })
}
