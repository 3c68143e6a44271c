/**
 * How to connect streaming software to a relay. Streamers share their screens, so addresses are inside closed `details`
 * elements, and no text, title or accessible name outside contains any part of one.
 */
import type { ComponentChildren } from 'preact'
import { type Addresses, connectionKit, latencyMillis } from '../connection-kit.ts'
import { QrCode } from './connection-kit-qr.tsx'

interface ConnectionKitProps {
  readonly sessionId: string
  readonly connectionId: string
  readonly connect: Addresses
}

export function ConnectionKit({ sessionId, connectionId, connect }: ConnectionKitProps) {
  const kit = connectionKit(`Relay ${connectionId}`, connect)
  const { belabox, passphrase } = kit
  const id = (name: string) => `${name}-${sessionId}`
  return (
    <>
      <p class="muted">
        Addresses are hidden in case you’re sharing your screen.
        <span class="scripted"> You can copy them without showing them.</span>
      </p>
      <Software name="Moblin" platform="iPhone">
        <DeepLink id={id('moblin')} app="Moblin" link={kit.moblinLink}>
          Scan the code with your phone’s camera. Moblin asks you before it adds the stream.
        </DeepLink>
      </Software>
      <Software name="IRL Pro" platform="Android">
        <DeepLink id={id('irl-pro')} app="IRL Pro" link={kit.irlProLink}>
          Scan the code with your phone’s camera and open it with IRL Pro, or copy the link and paste it in IRL Pro
          under Import Settings. If your version doesn’t support this, enter the three values under BELABOX.
        </DeepLink>
      </Software>
      <Software name="Larix" platform="iPhone, Android">
        <DeepLink id={id('larix')} app="Larix" link={kit.larixLink}>
          Scan the code with your phone’s camera. Larix uses one network at a time, since it supports SRT but not SRTLA.
        </DeepLink>
      </Software>
      <Software name="BELABOX" platform="encoder">
        <p>Choose a manual relay server, enter these three values, and set the SRT latency to {latencyMillis} ms.</p>
        <Value id={id('belabox-address')} label="Relay address" value={belabox.address} />
        <Value id={id('belabox-port')} label="Relay port" value={belabox.port} />
        <Value id={id('belabox-stream')} label="Stream ID" value={belabox.streamId} />
        {passphrase !== undefined && (
          <>
            <p>
              This relay accepts encrypted streams only. Enter the passphrase too. An encoder that has no field for it
              can’t stream to this relay.
            </p>
            <Value id={id('belabox-passphrase')} label="Passphrase" value={passphrase} />
          </>
        )}
      </Software>
      <Software name="OBS" platform="computer">
        <ol>
          <li>Add a media source and clear “Local File”.</li>
          <li>Paste this value into “Input”. It sets a latency of {latencyMillis / 1000} seconds.</li>
          <li>Enter “mpegts” as “Input Format”.</li>
        </ol>
        <Value id={id('obs')} label="Input" value={kit.obsInput} />
      </Software>
      <Software name="Other software" platform="plain addresses">
        <Value id={id('srtla')} label="Stream with SRTLA" value={connect.srtla_url} />
        <Value id={id('srt')} label="Stream with SRT" value={connect.srt_url} />
        <Value id={id('player')} label="Playback" value={connect.player_url} />
        <Value id={id('stats')} label="Statistics" value={connect.stats_url} />
      </Software>
    </>
  )
}

interface SoftwareProps {
  readonly name: string
  readonly platform: string
  readonly children: ComponentChildren
}

const Software = ({ name, platform, children }: SoftwareProps) => (
  <details class="software">
    <summary>
      <h4>
        {name} <span class="muted">{platform}</span>
      </h4>
    </summary>
    <div class="software-steps">{children}</div>
  </details>
)

interface DeepLinkProps {
  readonly id: string
  readonly app: string
  readonly link: string
  readonly children: ComponentChildren
}

const DeepLink = ({ id, app, link, children }: DeepLinkProps) => (
  <>
    <div class="row scripted">
      {/* A button instead of a link, since browsers show the address of a link. */}
      <button class="touch" type="button" data-follow={id}>
        Open in {app}
      </button>
      <CopyButton id={id} label="Copy link" subject={`for ${app}`} />
    </div>
    <details data-secret>
      <summary>
        Show QR code<span class="unseen"> for {app}</span>
      </summary>
      <p>{children}</p>
      <QrCode content={link} title={`QR code for ${app}`} />
      <p>
        <a class="button second" id={id} href={link}>
          Open in {app}
        </a>
      </p>
    </details>
  </>
)

interface ValueProps {
  readonly id: string
  readonly label: string
  readonly value: string
}

const Value = ({ id, label, value }: ValueProps) => (
  <div class="value">
    <details data-secret>
      <summary>
        <span>
          <span class="unseen">Show </span>
          {label} <span aria-hidden="true">••••</span>
        </span>
      </summary>
      <code class="code" id={id}>
        {value}
      </code>
    </details>
    <CopyButton id={id} label="Copy" subject={label} />
  </div>
)

interface CopyButtonProps {
  /** The id of the element to copy. */
  readonly id: string
  readonly label: string
  /** What is copied, for screen readers. */
  readonly subject: string
}

const CopyButton = ({ id, label, subject }: CopyButtonProps) => (
  <button class="second scripted" type="button" data-copy={id}>
    <span data-label>{label}</span>
    <span class="unseen"> {subject}</span>
  </button>
)
