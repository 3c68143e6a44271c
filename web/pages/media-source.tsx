/** The settings of a Media Source in OBS for a relay, besides its input. */

/** As OBS names them. A short delay brings a picture back soon, and short probing shows the first one sooner. */
const settings = [
  ['Reconnect Delay', '2 s'],
  ['Network Buffering', '1 MB'],
  ['Hardware decoding', 'off'],
] as const

export const ffmpegOptions = 'analyzeduration=500000 probesize=50000'

export const MediaSourceSettings = () => (
  <dl class="facts">
    {settings.flatMap(([name, value]) => [<dt key={name}>{name}</dt>, <dd key={`${name} value`}>{value}</dd>])}
    <dt>FFmpeg Options</dt>
    <dd class="options">
      <code>{ffmpegOptions}</code>
    </dd>
  </dl>
)
