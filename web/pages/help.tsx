/** The help page: connecting an app, what the states of a relay mean, why video stops, and where to ask. */
import type { ComponentChildren } from 'preact'
import { Icon } from '../icons.tsx'
import type { PageHandler } from '../page.ts'
import { ConnectSteps } from './help-apps.tsx'

export const show: PageHandler = ({ config, isSignedIn }) => ({
  name: 'help',
  title: 'Help',
  preview: { description: 'From an account to video in OBS, and what to check when there is none.' },
  styles: ['help.css'],
  page: <Help supportEmail={config.supportEmail} isSignedIn={isSignedIn} />,
})

interface HelpProps {
  readonly supportEmail: string | undefined
  readonly isSignedIn: boolean
}

const Help = ({ supportEmail, isSignedIn }: HelpProps) => (
  <>
    <div class="page-head">
      <h1>Help</h1>
      <p class="lead">From an account to video in OBS, and what to check when there is none.</p>
    </div>
    <div class="help">
      <nav class="card contents" aria-label="On this page">
        {topics.map(([id, title]) => (
          <a key={id} class="link" href={`#${id}`}>
            {title}
          </a>
        ))}
      </nav>
      <div class="stack">
        <Topic id="connect">
          <ConnectSteps isSignedIn={isSignedIn} />
        </Topic>
        <Topic id="plugin">
          <Plugin />
        </Topic>
        <Topic id="obs">
          <Obs />
        </Topic>
        <Topic id="states">
          <States />
        </Topic>
        <Topic id="no-video">
          <NoVideo />
        </Topic>
        <Topic id="ended">
          <Endings />
        </Topic>
        <Topic id="contact">
          <Contact supportEmail={supportEmail} />
        </Topic>
      </div>
    </div>
  </>
)

const topics = [
  ['connect', 'Connect your app'],
  ['plugin', 'The plugin for OBS'],
  ['obs', 'OBS and its scenes'],
  ['states', 'What the states mean'],
  ['no-video', 'No video in OBS'],
  ['ended', 'Why a relay ended'],
  ['contact', 'Contact'],
] as const

interface TopicProps {
  readonly id: (typeof topics)[number][0]
  readonly children: ComponentChildren
}

const Topic = ({ id, children }: TopicProps) => (
  <section class="card" id={id} aria-labelledby={`${id}-title`}>
    <h2 id={`${id}-title`}>{topics.find(([topic]) => topic === id)?.[1]}</h2>
    {children}
  </section>
)

const Plugin = () => (
  <>
    <p>
      The plugin runs inside OBS. It starts a relay when OBS opens, stops it when OBS closes, and shows there what the
      relay receives. You don’t need it: everything it does to your relays you can do on the{' '}
      <a href="/relays">relays page</a>.
    </p>
    <ol class="numbered">
      <li>Start the sign-in in the plugin. It opens this site in your browser and shows a code.</li>
      <li>Approve the sign-in here, if the code is the same on both.</li>
      <li>
        To end its sign-in, sign it out under <a href="/account/security">Security</a>.
      </li>
    </ol>
    <p>
      To write a plugin of your own, begin with the <a href="/docs">API reference</a>.
    </p>
  </>
)

const Obs = () => (
  <>
    <p>
      OBS can’t see that a stream is gone: it shows the last picture, or one that you choose for the{' '}
      <a href="/connections">connection</a>. A script or a scene switcher shows another scene until the stream is back.
    </p>
    <p class="row">
      <a class="link" href="/help/obs">
        <Icon name="film" />
        OBS: outages, settings, play keys
      </a>
      <a class="link" href="/help/scene-switching">
        <Icon name="clapperboard" />
        Scene switching
      </a>
    </p>
  </>
)

const States = () => (
  <dl class="meanings">
    <dt>
      <span class="badge warn">Starting</span>
    </dt>
    <dd>The relay is being prepared. This takes from a second to a few minutes.</dd>
    <dt>
      <span class="badge good">Ready</span>
    </dt>
    <dd>The relay runs and waits for its first video. Start the stream in your app.</dd>
    <dt>
      <span class="badge live">Live</span>
    </dt>
    <dd>The relay receives video. The card says at which bitrate, and over how many links.</dd>
    <dt>
      <span class="badge warn">No video</span>
    </dt>
    <dd>The relay runs, but your stream stopped. Start it again in your app: the address is the same.</dd>
    <dt>
      <span class="badge bad">No SRT engine</span>
    </dt>
    <dd>The relay can’t forward video, since a program is missing on its machine. Contact support.</dd>
    <dt>
      <span class="badge bad">Connection lost</span>
    </dt>
    <dd>
      The relay stopped reporting. It comes back by itself if it reports again before its time is over, and ends
      otherwise.
    </dd>
    <dt>
      <span class="badge warn">Stopping</span>
    </dt>
    <dd>You or the plugin stopped it. Until its time is over you can keep it running, at the same address.</dd>
    <dt>
      <span class="badge bad">Shutting down</span>
    </dt>
    <dd>We’re ending the relay, such as because your plan ended. The card says when it is over.</dd>
    <dt>
      <span class="badge">Ended</span>
    </dt>
    <dd>The relay is gone. The next one may have a new address, and your history keeps what happened.</dd>
  </dl>
)

const NoVideo = () => (
  <ol class="numbered">
    <li>
      <strong>Does the relay receive video?</strong> Open <a href="/relays">Relays</a>. “No video yet” means that your
      app doesn’t reach the relay: check the next two points.
    </li>
    <li>
      <strong>Is it the address of this relay?</strong> A new relay may have a new address. Scan its code again, or copy
      the values again.
    </li>
    <li>
      <strong>Does the network let UDP through?</strong> SRT uses UDP. Company and hotel networks often block it. Turn
      Wi-Fi off and try the mobile network alone.
    </li>
    <li>
      <strong>The relay receives video, but OBS is black?</strong> Check “Input” of the media source against the
      connection kit. Then close and open its properties, which makes OBS connect again.
    </li>
    <li>
      <strong>The video stutters?</strong> Lower the bitrate of your app to less than the sum of its links, and keep the
      latency at 2 seconds or more.
    </li>
  </ol>
)

const Endings = () => (
  <>
    <p>
      <a href="/history">History</a> states the reason for each relay. These are the usual ones:
    </p>
    <dl class="meanings">
      <dt>It was stopped</dt>
      <dd>By you on the site, by the plugin, or because OBS closed.</dd>
      <dt>Its connection was lost</dt>
      <dd>Its machine or its network failed. Start a new one, and compare the address in your app with its kit.</dd>
      <dt>It didn’t start in time</dt>
      <dd>The region couldn’t provide a machine. Try again, or choose another region.</dd>
      <dt>Your plan ended, or includes fewer relays</dt>
      <dd>
        Your <a href="/account">plan</a> shows what it includes and until when.
      </dd>
      <dt>It ran for the longest time</dt>
      <dd>A relay ends after its longest session, at the earliest when no video arrives. Start a new one.</dd>
    </dl>
  </>
)

const Contact = ({ supportEmail }: Pick<HelpProps, 'supportEmail'>) => (
  <>
    {supportEmail ? (
      <p>
        Write to{' '}
        <a href={`mailto:${supportEmail}`} data-support>
          {supportEmail}
        </a>
        . Name the relay and the time at which it happened: both are in your history.
      </p>
    ) : null}
    <p class="row">
      <a class="link" href="/status">
        <Icon name="activity" />
        Status of the service
      </a>
      <a class="link" href="/docs">
        <Icon name="code" />
        API reference
      </a>
    </p>
  </>
)
