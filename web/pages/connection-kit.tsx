/**
 * How to connect streaming software to a relay. Streamers share their screens, so nothing of it can be read until they ask:
 * every address is within a closed `details`, and no text, title or accessible name outside has any part of it. It has to be
 * in the page's source, for how else could it be shown or copied; viewers do not see that.
 */
import type { ComponentChildren } from 'preact'
import { type Addresses, connectionKit, latencyMillis } from '../connection-kit.ts'
import { QrCode } from './connection-kit-qr.tsx'

interface Shown {
  readonly sessionId: string
  readonly connectionId: string
  readonly connect: Addresses
}

export function ConnectionKit({ sessionId, connectionId, connect }: Shown) {
  const kit = connectionKit(`Relay ${connectionId}`, connect)
  const { belabox } = kit
  const id = (name: string) => `${name}-${sessionId}`
  return (
    <>
      <p class="muted">
        Addresses stay hidden, since screens get shared.
        <span class="scripted"> You can copy them without showing them.</span>
      </p>
      <Software name="Moblin" on="iPhone">
        <DeepLink id={id('moblin')} app="Moblin" link={kit.moblinLink}>
          Scan the code with the phone’s camera. Moblin asks before it adds the stream.
        </DeepLink>
      </Software>
      <Software name="IRL Pro" on="Android">
        <DeepLink id={id('irl-pro')} app="IRL Pro" link={kit.irlProLink}>
          Scan the code with the phone’s own camera and open it with IRL Pro, or copy the link and paste it there under
          Import Settings. A version that does not take it needs the three values under BELABOX.
        </DeepLink>
      </Software>
      <Software name="Larix" on="iPhone, Android">
        <DeepLink id={id('larix')} app="Larix" link={kit.larixLink}>
          Scan the code with the phone’s camera. Larix uses one network at a time: it knows SRT, but not SRTLA.
        </DeepLink>
      </Software>
      <Software name="BELABOX" on="encoder">
        <p>Choose a manual relay server, enter these three, and set the SRT latency to {latencyMillis} ms.</p>
        <Value id={id('belabox-address')} label="Relay address" value={belabox.address} />
        <Value id={id('belabox-port')} label="Relay port" value={belabox.port} />
        <Value id={id('belabox-stream')} label="Stream id" value={belabox.streamId} />
      </Software>
      <Software name="OBS" on="computer">
        <ol>
          <li>Add a media source, and untick “Local File”.</li>
          <li>Paste this as “Input”. It asks for {latencyMillis / 1000} seconds of latency.</li>
          <li>Enter “mpegts” as “Input Format”.</li>
        </ol>
        <Value id={id('obs')} label="Input" value={kit.obsInput} />
      </Software>
      <Software name="Anything else" on="plain addresses">
        <Value id={id('srtla')} label="Stream by SRTLA" value={connect.srtla_url} />
        <Value id={id('srt')} label="Stream by SRT" value={connect.srt_url} />
        <Value id={id('player')} label="Play" value={connect.player_url} />
        <Value id={id('stats')} label="Statistics" value={connect.stats_url} />
      </Software>
    </>
  )
}

interface SoftwareParts {
  readonly name: string
  /** What it runs on. */
  readonly on: string
  readonly children: ComponentChildren
}

const Software = ({ name, on, children }: SoftwareParts) => (
  <details class="software">
    <summary>
      <h4>
        {name} <span class="muted">{on}</span>
      </h4>
    </summary>
    <div class="software-steps">{children}</div>
  </details>
)

interface DeepLinkParts {
  readonly id: string
  readonly app: string
  readonly link: string
  readonly children: ComponentChildren
}

const DeepLink = ({ id, app, link, children }: DeepLinkParts) => (
  <>
    <div class="row scripted">
      {/* A button and not the link itself: a browser shows where a link leads. */}
      <button class="touch" type="button" data-follow={id}>
        Open in {app}
      </button>
      <Copy id={id} says="Copy link" what={`for ${app}`} />
    </div>
    <details data-secret>
      <summary>
        Show the code<span class="unseen"> for {app}</span>
      </summary>
      <p>{children}</p>
      <QrCode of={link} title={`QR code for ${app}`} />
      <p>
        <a class="button second" id={id} href={link}>
          Open in {app}
        </a>
      </p>
    </details>
  </>
)

interface ValueParts {
  readonly id: string
  readonly label: string
  readonly value: string
}

const Value = ({ id, label, value }: ValueParts) => (
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
    <Copy id={id} says="Copy" what={label} />
  </div>
)

const Copy = ({ id, says, what }: { readonly id: string; readonly says: string; readonly what: string }) => (
  <button class="second scripted" type="button" data-copy={id}>
    <span data-says>{says}</span>
    <span class="unseen"> {what}</span>
  </button>
)
