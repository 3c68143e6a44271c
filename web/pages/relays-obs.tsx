/** *Connect OBS* on the relays page: the ways to the picture, with and without a running relay. */
import type { ComponentChildren } from 'preact'
import type { Session } from '../api-replies.ts'
import { Icon, type IconName } from '../icons.tsx'
import { CopyButton } from './connection-kit.tsx'
import { MediaSourceSettings } from './media-source.tsx'

interface ConnectObsProps {
  /** Scheme, host and port of this site, which the source and the script ask for. */
  readonly origin: string
  /** Source and script sign in as apps. */
  readonly canConnectApps: boolean
  readonly sessions: readonly Session[]
}

/** `relays.js` replaces it when a relay gets its addresses or is gone. */
export const ConnectObs = ({ origin, canConnectApps, sessions }: ConnectObsProps) => {
  const ready = sessions.filter(({ connect }) => connect)
  const version = ready.map(({ session_id }) => session_id).join(' ')
  return (
    <section class="card" aria-labelledby="connect-obs" data-part="connect-obs" data-version={version}>
      <h2 id="connect-obs" tabIndex={-1}>
        Connect OBS
      </h2>
      <p class="muted">
        {canConnectApps ? 'Choose one of three ways. ' : ''}When your stream breaks off, OBS shows the last picture, or{' '}
        <a href="/connections">one that you choose</a>: {canConnectApps ? 'the script, or ' : ''}a{' '}
        <a href="/help/scene-switching">scene switcher</a>
        {canConnectApps ? ',' : ''} shows another scene. <a href="/help/obs">More about OBS</a>
      </p>
      <div class="ways">
        {canConnectApps ? <ProviderSource origin={origin} /> : null}
        <MediaSource sessions={ready} />
        {canConnectApps ? <Script /> : null}
      </div>
    </section>
  )
}

interface WayProps {
  readonly name: 'source' | 'media-source' | 'script'
  readonly icon: IconName
  readonly title: string
  /** What it is good for. */
  readonly benefit: string
  readonly children: ComponentChildren
}

const Way = ({ name, icon, title, benefit, children }: WayProps) => (
  <div class="way" data-way={name}>
    <h3>
      <Icon name={icon} />
      {title}
    </h3>
    <p class="muted">{benefit}</p>
    {children}
  </div>
)

const ProviderSource = ({ origin }: Pick<ConnectObsProps, 'origin'>) => (
  <Way name="source" icon="log-in" title="IRL Source" benefit="No address to copy: you sign in.">
    <ol>
      <li>
        Install{' '}
        <a href="https://github.com/irlserver/obs-irl-source" rel="noreferrer">
          obs-irl-source
        </a>
        , and add an IRL Source to a scene.
      </li>
      <li>Choose “Custom provider”, and enter this address:</li>
    </ol>
    <p class="row">
      <code id="site-address">{origin}</code>
      <CopyButton id="site-address" label="Copy" subject="the address of this site" />
    </p>
    <ol start={3}>
      <li>Press “Sign in”, approve in your browser, and pick the connection as ingest.</li>
    </ol>
  </Way>
)

const MediaSource = ({ sessions }: Pick<ConnectObsProps, 'sessions'>) => (
  <Way name="media-source" icon="film" title="A Media Source" benefit="Nothing to install.">
    <ol>
      <li>Add a Media Source and clear “Local File”.</li>
      <li>
        {sessions.length > 0
          ? 'Paste the input of your relay:'
          : 'Paste the input of your relay. Start one first: its connection kit has the input, under “2. OBS”.'}
      </li>
    </ol>
    {sessions.map(({ session_id: id, connection_id: name }) => (
      <p class="row" key={id}>
        <CopyButton id={`obs-${id}`} label="Copy input" subject={`of ${name}`} />
        <span class="unscripted">It is in the connection kit, under “2. OBS”.</span>
        {sessions.length > 1 ? <span class="muted">{name}</span> : null}
      </p>
    ))}
    <ol start={3}>
      <li>Enter these settings:</li>
    </ol>
    <MediaSourceSettings />
  </Way>
)

const Script = () => (
  <Way
    name="script"
    icon="clapperboard"
    title="The script"
    benefit="Starts your relay with OBS, adds the source, and switches scenes."
  >
    <ol>
      <li>Download the script.</li>
      <li>
        In OBS open <strong>Tools → Scripts</strong>, press <strong>+</strong> and choose the file.
      </li>
      <li>
        Enter the address of this site as service, and press <strong>Sign in</strong>.
      </li>
    </ol>
    <p class="row">
      <a class="button second" href="/downloads/relay-control.py" download>
        <Icon name="download" />
        Download
        <span class="unseen"> the script for OBS</span>
      </a>
    </p>
  </Way>
)
