/**
 * QR codes as images of this site, so that no third party sees their contents. They are large, so pages load those that
 * are shown only.
 */
import { renderToString } from 'preact-render-to-string'
import { encode } from 'uqr'
import { type ConnectionKit, connectionKit, connectionNameOf } from '../connection-kit.ts'
import type { PageHandler } from '../page.ts'
import { problemPage } from './problem.tsx'

/** The link in the code of each app that scans one. */
const links: Readonly<Record<string, (kit: ConnectionKit) => string>> = {
  'moblin.svg': (kit) => kit.moblinLink,
  'irl-pro.svg': (kit) => kit.irlProLink,
  'larix.svg': (kit) => kit.larixLink,
}

export const show: PageHandler = async (visit) => {
  const { session_id: id, file = '' } = visit.params
  const linkOf = Object.hasOwn(links, file) ? links[file] : undefined
  const { data } = await visit.api.GET('/api/v1/relay/active')
  const session = data?.sessions?.find(({ session_id }) => session_id === id)
  if (!linkOf || !session?.connect) return problemPage('not_found')
  const kit = connectionKit(connectionNameOf(session.connection_id), session.connect)
  const content = renderToString(<QrCode content={linkOf(kit)} />)
  return { download: { fileName: `qr-code-${file}`, contentType: 'image/svg+xml', content, isShown: true } }
}

/** The quiet zone that ISO/IEC 18004 requires. */
const borderModules = 4

/** Black on white in dark mode too, since many scanners cannot read inverted codes. */
export function QrCode({ content }: { readonly content: string }) {
  const { size, data } = encode(content, { ecc: 'M', border: borderModules })
  return (
    <svg xmlns="http://www.w3.org/2000/svg" viewBox={`0 0 ${size} ${size}`} shape-rendering="crispEdges">
      <title>QR code</title>
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
