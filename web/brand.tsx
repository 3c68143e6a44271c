/** The mark and the name of the service. */

/** Three links that join into one stream. It takes the colours of the page, so it needs no file of its own. */
export const Mark = () => (
  <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
    <rect width="32" height="32" rx="9" class="mark-ground" />
    <path class="mark-links" d="M6.500 9h4.500c5.500 0 4.500 7 9 7M6.500 16H20M6.500 23h4.500c5.500 0 4.500-7 9-7" />
    <circle class="mark-stream" cx="23.500" cy="16" r="3.500" />
  </svg>
)

export const Brand = ({ name }: { readonly name: string }) => (
  <a class="brand" href="/">
    <Mark />
    <span>{name}</span>
  </a>
)
