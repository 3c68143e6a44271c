/** QR codes as inline SVG, so that no third party sees their contents. */
import { encode } from 'uqr'

/** The quiet zone that ISO/IEC 18004 requires. */
const borderModules = 4

interface QrCodeProps {
  readonly content: string
  /** The accessible name, which browsers also show as a tooltip. It must not contain the content. */
  readonly title: string
}

/** Black on white in dark mode too, since many scanners cannot read inverted codes. */
export function QrCode({ content, title }: QrCodeProps) {
  const { size, data } = encode(content, { ecc: 'M', border: borderModules })
  return (
    <svg class="qr" role="img" viewBox={`0 0 ${size} ${size}`} shape-rendering="crispEdges">
      <title>{title}</title>
      <rect width={size} height={size} fill="#fff" />
      <path d={data.map(pathOfRow).join('')} fill="#000" />
    </svg>
  )
}

/** One rectangle for each run of dark modules. */
function pathOfRow(row: readonly boolean[], y: number): string {
  const starts = row.flatMap((dark, x) => (dark && !row[x - 1] ? [x] : []))
  return starts
    .map((x) => {
      const end = row.indexOf(false, x)
      const width = (end === -1 ? row.length : end) - x
      return `M${x} ${y}h${width}v1h-${width}z`
    })
    .join('')
}
