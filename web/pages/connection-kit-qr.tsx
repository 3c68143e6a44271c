/** QR codes as pictures of our own, so that nothing but the page itself has to be loaded or trusted. */
import { encode } from 'uqr'

/** Without four modules of quiet around it many cameras see no code. */
const quietModules = 4

interface Shown {
  /** What the code holds. */
  readonly of: string
  /** What it is for: read out, and shown by browsers as a tooltip. Never what it holds. */
  readonly title: string
}

/** Black on white whatever the page's colours are: scanners do not read inverted codes well. */
export function QrCode({ of, title }: Shown) {
  const { size, data } = encode(of, { ecc: 'M', border: quietModules })
  return (
    <svg class="qr" role="img" viewBox={`0 0 ${size} ${size}`} shape-rendering="crispEdges">
      <title>{title}</title>
      <rect width={size} height={size} fill="#fff" />
      <path d={data.map(runs).join('')} fill="#000" />
    </svg>
  )
}

/** The dark modules of a row, neighbours as one rectangle. */
function runs(row: readonly boolean[], y: number): string {
  const starts = row.flatMap((dark, x) => (dark && !row[x - 1] ? [x] : []))
  return starts
    .map((x) => {
      const end = row.indexOf(false, x)
      const width = (end === -1 ? row.length : end) - x
      return `M${x} ${y}h${width}v1h-${width}z`
    })
    .join('')
}
