/** Why scenes have to be switched from outside OBS, and the two ways to do it. */
import { Icon } from '../icons.tsx'
import type { PageHandler } from '../page.ts'
import { HelpPage } from './help-page.tsx'
import { MeasuredTimes } from './measured-times.tsx'

export const show: PageHandler = ({ origin }) => ({
  name: 'help-scene-switching',
  title: 'Scene switching',
  styles: ['help.css', 'notifications.css'],
  page: (
    <HelpPage
      title="Scene switching"
      lead="“Be right back” while your stream is away, and your stream when it is back."
      topics={[
        { id: 'why', title: 'Why OBS needs help', content: <Why /> },
        { id: 'script', title: 'With the script', content: <Script origin={origin} /> },
        { id: 'noalbs', title: 'With NOALBS', content: <Noalbs /> },
        { id: 'noalbs-times', title: 'When NOALBS switches', content: <NoalbsTimes /> },
      ]}
    />
  ),
})

const Why = () => (
  <>
    <p>
      When your stream breaks off, <a href="/help/obs">OBS can’t see it</a>: it shows the last picture, or the one that
      you have chosen for the <a href="/connections">connection</a>. The relay knows within two seconds. The script and
      scene switchers ask it, and change the scene for you. They see the stream as lost whatever picture players get.
    </p>
    <p>Use one of them. Two switchers would work against each other.</p>
  </>
)

const Script = ({ origin }: { readonly origin: string }) => (
  <>
    <ol class="numbered">
      <li>
        <a href="/downloads/relay-control.py" download>
          Download the script
        </a>
        , open Tools → Scripts in OBS, press +, and choose the file.
      </li>
      <li>
        Enter <code>{origin}</code> as service, press “Sign in”, and approve in your browser.
      </li>
      <li>Turn on “Switch scenes”, and choose your scenes:</li>
    </ol>
    <dl class="meanings">
      <dt>Scene while live</dt>
      <dd>Has the picture of your relay. It is shown about 2 seconds after good video is back.</dd>
      <dt>Scene while weak</dt>
      <dd>
        After 3 seconds below the bitrate at which a stream counts as weak, 800 kbps as a rule. Without this scene the
        live one stays.
      </dd>
      <dt>Scene “be right back”</dt>
      <dd>2 to 3 seconds after the last video came in.</dd>
    </dl>
    <p>
      While another scene is on air, such as one for your intro, the script leaves it there. It never switches twice
      within 2 seconds.
    </p>
  </>
)

/** Placeholders in place of a relay’s values, which its connection kit has. */
const [statsUrl, publisher] = ['http://relay.example:5080/stats/PLAY_KEY', 'PLAY_KEY']

/** The stream servers of NOALBS that read our statistics, each as its configuration file names it. */
const servers = [
  { streamServer: { type: 'SrtLiveServer', statsUrl, publisher } },
  { streamServer: { type: 'Belabox', statsUrl, publisher } },
  { streamServer: { type: 'OpenIRL', statsUrl } },
]

const configOf = (server: (typeof servers)[number]): string =>
  JSON.stringify(
    { ...server, name: 'Relay', priority: 0, overrideScenes: null, dependsOn: null, enabled: true },
    null,
    2,
  )

const Noalbs = () => (
  <>
    <p>
      NOALBS runs beside OBS and asks the relay once a second. It needs OBS 30 or newer. Add one of these to{' '}
      <code>streamServers</code> in its <code>config.json</code>. All three types do the same: take{' '}
      <code>SrtLiveServer</code> unless you use another one already.
    </p>
    {servers.map((server) => (
      <div class="stack" key={server.streamServer.type}>
        <h3>{server.streamServer.type}</h3>
        <pre class="code sample" data-server={server.streamServer.type}>
          {configOf(server)}
        </pre>
      </div>
    ))}
    <p>
      Copy “Statistics URL” and “Publisher” from the connection kit of your <a href="/relays">relay</a>, under Scene
      switchers. The play key is part of the address, so it also works where a query would be left out. After you have
      deleted the key under <a href="/account/keys">Account → Keys</a>, copy both again.
    </p>
  </>
)

const noalbsTimes = [
  { name: 'live', what: 'The stream starts, or is back: to the live scene', seconds: 2 },
  { name: 'low', what: 'The bitrate is low: to the scene for it', seconds: 6 },
  { name: 'recovered', what: 'The bitrate is good again: to the live scene', seconds: 5 },
  { name: 'gone', what: 'The stream is gone: to the offline scene', seconds: '5 to 8' },
]

const NoalbsTimes = () => (
  <>
    <p>
      It switches after five equal verdicts, a second apart, so that one bad second switches nothing. Only a stream that
      comes back is shown at once.
    </p>
    <MeasuredTimes
      measurements={noalbsTimes}
      how="With this service, in each of the three types, with retryAttempts 5 and instantlySwitchOnRecover on."
    />
    <p>
      NOALBS takes a blank page of statistics for the end of the stream. The relay never serves one: without a stream it
      replies with an empty list of publishers.
    </p>
    <p class="row">
      <a class="link" href="/help/obs">
        <Icon name="film" />
        OBS
      </a>
      <a class="link" href="/relays">
        <Icon name="radio" />
        Relays
      </a>
    </p>
  </>
)
