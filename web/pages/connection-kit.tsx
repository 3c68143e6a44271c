/**
 * How to connect streaming software to a relay. Streamers share their screens, so addresses are inside closed `details`
 * elements, and no text, title or accessible name outside contains any part of one.
 */
import type { ComponentChildren } from 'preact'
import {
  type Addresses,
  connectionKit,
  connectionNameOf,
  type ConnectionKit as Kit,
  latencyMillis,
} from '../connection-kit.ts'
import { type KitStates, KitStep } from './kit-steps.tsx'
import { MediaSourceSettings } from './media-source.tsx'

interface ConnectionKitProps {
  readonly sessionId: string
  readonly connectionId: string
  readonly connect: Addresses
  readonly states: KitStates
}

interface App {
  readonly name: string
  readonly label: string
  readonly platform: string
}

/** The apps of each step, in the order of their tabs. `relays.css` has a rule for each name. */
const phoneApps: readonly App[] = [
  { name: 'moblin', label: 'Moblin', platform: 'iPhone' },
  { name: 'irl-pro', label: 'IRL Pro', platform: 'Android' },
  { name: 'larix', label: 'Larix', platform: 'phones' },
  { name: 'belabox', label: 'BELABOX', platform: 'encoder' },
]
const moreApps: readonly App[] = [
  { name: 'switchers', label: 'Scene switchers', platform: 'NOALBS' },
  { name: 'overlays', label: 'Overlays', platform: 'statistics' },
  { name: 'other', label: 'Other', platform: 'addresses' },
]

/** Two steps, and what is needed by some only. Their apps are radio buttons, which work without scripts. */
export function ConnectionKit({ sessionId, connectionId, connect, states }: ConnectionKitProps) {
  const kit = connectionKit(connectionNameOf(connectionId), connect)
  const step = (name: 'phone' | 'obs' | 'more') => ({ id: `kit-${name}-${sessionId}`, name, connectionId })
  return (
    <div class="kits">
      <p class="muted">
        Addresses are hidden in case you’re sharing your screen.
        <span class="scripted"> You can copy them without showing them.</span>
      </p>
      <KitStep {...step('phone')} title="1. Phone" state={states.phone}>
        <Apps name={`phone-${sessionId}`} legend="Your app" apps={phoneApps}>
          <PhoneApps sessionId={sessionId} kit={kit} />
          <Belabox sessionId={sessionId} kit={kit} />
        </Apps>
      </KitStep>
      <KitStep {...step('obs')} title="2. OBS" state={states.obs}>
        <ObsSource sessionId={sessionId} kit={kit} />
      </KitStep>
      <KitStep {...step('more')} title="More: scene switchers, overlays, addresses">
        <Apps name={`more-${sessionId}`} legend="More apps" apps={moreApps}>
          <SceneSwitchers sessionId={sessionId} kit={kit} />
          <Overlays sessionId={sessionId} statsUrl={connect.stats_url} />
          <OtherAddresses sessionId={sessionId} connect={connect} />
        </Apps>
      </KitStep>
    </div>
  )
}

interface AppsProps {
  /** Of the radio buttons. */
  readonly name: string
  readonly legend: string
  readonly apps: readonly App[]
  readonly children: ComponentChildren
}

const Apps = ({ name: group, legend, apps, children }: AppsProps) => (
  <div class="apps">
    <fieldset class="app-tabs">
      <legend class="unseen">{legend}</legend>
      {apps.map(({ name, label, platform }, index) => (
        <label key={name}>
          <input class="unseen" type="radio" name={`app-${group}`} value={name} checked={index === 0} />
          {label} <span class="muted">{platform}</span>
        </label>
      ))}
    </fieldset>
    {children}
  </div>
)

interface KitProps {
  readonly sessionId: string
  readonly kit: Kit
}

const PhoneApps = ({ sessionId, kit }: KitProps) => (
  <>
    <App name="moblin">
      <DeepLink sessionId={sessionId} app="moblin" label="Moblin" link={kit.moblinLink}>
        Scan the code with your phone’s camera. Moblin asks you before it adds the stream.
      </DeepLink>
    </App>
    <App name="irl-pro">
      <DeepLink sessionId={sessionId} app="irl-pro" label="IRL Pro" link={kit.irlProLink}>
        Scan the code with your phone’s camera and open it with IRL Pro, or copy the link and paste it in IRL Pro under
        Import Settings. If your version doesn’t support this, enter the three values under BELABOX.
      </DeepLink>
    </App>
    <App name="larix">
      <DeepLink sessionId={sessionId} app="larix" label="Larix" link={kit.larixLink}>
        Scan the code with your phone’s camera. Larix uses one network at a time, since it supports SRT but not SRTLA.
      </DeepLink>
    </App>
  </>
)

const Belabox = ({ sessionId, kit: { belabox, passphrase } }: KitProps) => (
  <App name="belabox">
    <p>Choose a manual relay server, enter these three values, and set the SRT latency to {latencyMillis} ms.</p>
    <Value id={`belabox-address-${sessionId}`} label="Relay address" value={belabox.address} />
    <Value id={`belabox-port-${sessionId}`} label="Relay port" value={belabox.port} />
    <Value id={`belabox-stream-${sessionId}`} label="Stream ID" value={belabox.streamId} />
    {passphrase !== undefined && (
      <>
        <p>
          This relay accepts encrypted streams only. Enter the passphrase too. An encoder that has no field for it can’t
          stream to this relay.
        </p>
        <Value id={`belabox-passphrase-${sessionId}`} label="Passphrase" value={passphrase} />
      </>
    )}
  </App>
)

const ObsSource = ({ sessionId, kit }: KitProps) => (
  <App name="obs">
    <p>Add a media source, clear “Local File”, and enter these settings.</p>
    <Value id={`obs-${sessionId}`} label="Input" value={kit.obsInput} />
    <MediaSourceSettings />
    <p class="muted">
      The input has a play key: it plays this relay and can’t stream to it. <a href="/help/obs">About OBS</a>
    </p>
  </App>
)

const SceneSwitchers = ({ sessionId, kit: { switcher } }: KitProps) => (
  <App name="switchers">
    <p>
      In NOALBS add a stream server of the type <code>SrtLiveServer</code>, <code>Belabox</code> or <code>OpenIRL</code>{' '}
      with these values. The type <code>OpenIRL</code> has no publisher.
    </p>
    <Value id={`switcher-stats-${sessionId}`} label="Statistics URL" value={switcher.statsUrl} />
    <Value id={`switcher-publisher-${sessionId}`} label="Publisher" value={switcher.publisher} />
    <p class="muted">
      Both have a play key, which can’t stream to this relay. <a href="/help/scene-switching">About scene switching</a>
    </p>
  </App>
)

const Overlays = ({ sessionId, statsUrl }: { readonly sessionId: string; readonly statsUrl: string }) => (
  <App name="overlays">
    <p>Overlays that show bitrate and links read them from this address, as JSON. It has no key to play or stream.</p>
    <Value id={`stats-${sessionId}`} label="Statistics" value={statsUrl} />
  </App>
)

type OtherAddressesProps = Pick<ConnectionKitProps, 'sessionId' | 'connect'>

const OtherAddresses = ({ sessionId, connect }: OtherAddressesProps) => (
  <App name="other">
    <Value id={`srtla-${sessionId}`} label="Stream with SRTLA" value={connect.srtla_url} />
    <Value id={`srt-${sessionId}`} label="Stream with SRT" value={connect.srt_url} />
    {connect.srtla_url_v6 && (
      <Value id={`srtla-v6-${sessionId}`} label="Stream with SRTLA over IPv6" value={connect.srtla_url_v6} />
    )}
    {connect.srt_url_v6 && (
      <Value id={`srt-v6-${sessionId}`} label="Stream with SRT over IPv6" value={connect.srt_url_v6} />
    )}
    <Value id={`player-${sessionId}`} label="Playback" value={connect.player_url} />
  </App>
)

interface AppProps {
  readonly name: string
  readonly children: ComponentChildren
}

const App = ({ name, children }: AppProps) => (
  <div class="app" data-app={name}>
    {children}
  </div>
)

interface DeepLinkProps {
  readonly sessionId: string
  readonly app: string
  readonly label: string
  readonly link: string
  readonly children: ComponentChildren
}

const DeepLink = ({ sessionId, app, label, link, children }: DeepLinkProps) => {
  const id = `${app}-${sessionId}`
  const qr = `/relays/${sessionId}/qr/${app}.svg`
  return (
    <div class="deep-link">
      <details data-secret>
        <summary>
          Show QR code<span class="unseen"> for {label}</span>
        </summary>
        <p>{children}</p>
        {/*
          `connection-kit.js` loads it when it is shown. Without a script browsers would load all codes with the page.
        */}
        <img class="qr scripted" data-src={qr} width="320" height="320" alt={`QR code for ${label}`} />
        <noscript>
          <a class="link" href={qr}>
            Open the QR code
          </a>
        </noscript>
        <p>
          <a class="button second" id={id} href={link}>
            Open in {label}
          </a>
        </p>
      </details>
      {/* `relays.css` shows it first on a phone, which has the app and cannot scan its own screen. */}
      <div class="row scripted">
        {/* A button instead of a link, since browsers show the address of a link. */}
        <button class="touch" type="button" data-follow={id}>
          Open in {label}
        </button>
        <CopyButton id={id} label="Copy link" subject={`for ${label}`} />
      </div>
    </div>
  )
}

interface ValueProps {
  readonly id: string
  readonly label: string
  readonly value: string
  /** For screen readers, where a page has the same label several times. */
  readonly context?: string
  /** Shown with the text. */
  readonly children?: ComponentChildren
}

/** A hidden text that can be copied without showing it. Pages with one load `relays.css` and `connection-kit.js`. */
export const Value = ({ id, label, value, context = '', children }: ValueProps) => (
  <div class="value">
    <details data-secret>
      <summary>
        <span>
          <span class="unseen">Show </span>
          {label}
          {context ? <span class="unseen"> {context}</span> : null} <span aria-hidden="true">••••</span>
        </span>
      </summary>
      <code class="code" id={id}>
        {value}
      </code>
      {children}
    </details>
    <CopyButton id={id} label="Copy" subject={context ? `${label} ${context}` : label} />
  </div>
)

interface CopyButtonProps {
  /** The id of the element to copy. */
  readonly id: string
  readonly label: string
  /** What is copied, for screen readers. */
  readonly subject: string
}

export const CopyButton = ({ id, label, subject }: CopyButtonProps) => (
  <button class="second scripted" type="button" data-copy={id}>
    <span data-label>{label}</span>
    <span class="unseen"> {subject}</span>
  </button>
)
