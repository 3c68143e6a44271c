/** What OBS shows during an outage, how long one takes, and what to set. */
import { Icon } from '../icons.tsx'
import type { PageHandler } from '../page.ts'
import { HelpPage } from './help-page.tsx'
import { MeasuredTimes } from './measured-times.tsx'
import { ffmpegOptions } from './media-source.tsx'

export const show: PageHandler = () => ({
  name: 'help-obs',
  title: 'OBS',
  styles: ['help.css'],
  page: (
    <HelpPage
      title="OBS"
      lead="What you see when a stream breaks off, and how to set up OBS for it."
      topics={[
        { id: 'outages', title: 'OBS can’t see an outage', content: <Outages /> },
        { id: 'times', title: 'Measured times', content: <Times /> },
        { id: 'ways', title: 'What each way does', content: <Ways /> },
        { id: 'settings', title: 'Settings of a Media Source', content: <Settings /> },
        { id: 'sound', title: 'Sound after a gap', content: <Sound /> },
        { id: 'play-keys', title: 'Play keys', content: <PlayKeys /> },
      ]}
    />
  ),
})

const Outages = () => (
  <>
    <p>
      While your stream is away, OBS stays connected to the relay. It shows a still picture, and its controls say that
      the source is playing. Nothing in OBS notices that your stream is gone, so nothing switches by itself.
    </p>
    <p>
      You choose the picture for each <a href="/connections">connection</a>: the last one, with silence, or one of
      yours. With “Nothing” OBS keeps the last picture by itself. After 30 minutes the relay sends no picture any more.
    </p>
    <p>
      When the stream comes back, so does the picture. You never have to touch the source. Only without a relay the
      source turns black, after about 5 seconds, and connects again by itself.
    </p>
  </>
)

/** Seconds of `docs/proof/obs.json`, by its names. */
const measurements = [
  { name: 'obs_source_after', what: 'You add the source while the stream runs', seconds: 3.2 },
  { name: 'obs_source_before', what: 'The source waits, and the stream starts', seconds: 2.4 },
  { name: 'obs_publisher_stops_3', what: 'The stream stops, and starts again 3 s later', seconds: 3.8 },
  { name: 'obs_publisher_vanishes_3', what: 'The phone vanishes, and streams again 3 s later', seconds: 3.3 },
  { name: 'obs_publisher_vanishes_15', what: 'The phone vanishes, and streams again 15 s later', seconds: 15.4 },
  { name: 'obs_relay_killed', what: 'The relay fails, and we replace it', seconds: 9.8 },
  { name: 'obs_started_again', what: 'You stop the relay, and start it again', seconds: 6.1 },
]

const Times = () => (
  <>
    <p>How long OBS shows no new picture. The address of the relay stayed the same in each case.</p>
    <MeasuredTimes
      measurements={measurements}
      how="With OBS 29 on Linux and a Media Source with a reconnect delay of 2 s; OBS 30 and 32 differ by at most 1.2 s. A picture is 2 to 3 s old in any case."
    />
  </>
)

const Ways = () => (
  <dl class="meanings">
    <dt>IRL Source</dt>
    <dd>
      Lists your connections, and which of them are live. After 10 seconds without data it connects again, and can show
      nothing instead of the last picture. It switches no scenes.
    </dd>
    <dt>A Media Source</dt>
    <dd>
      Shows the still picture until the stream is back. Add a <a href="/help/scene-switching">scene switcher</a>.
    </dd>
    <dt>The script</dt>
    <dd>
      Hears from the relay that the stream is gone, and switches to “be right back” after{' '}
      <a href="/help/scene-switching#script">2 to 3 seconds</a>. It also starts the relay with OBS, and adds a Media
      Source with the settings below.
    </dd>
  </dl>
)

const Settings = () => (
  <dl class="meanings">
    <dt>Local File: off</dt>
    <dd>Shows the fields for an address.</dd>
    <dt>Input</dt>
    <dd>
      From the connection kit of your <a href="/relays">relay</a>. If the source stays black after you have started the
      relay again, compare it with the kit: in some regions a relay gets another host with each start.
    </dd>
    <dt>Reconnect Delay: 2 s</dt>
    <dd>When a relay was away, the picture came back 3 seconds after it. With the usual 10 it was 10 seconds.</dd>
    <dt>Network Buffering: 1 MB</dt>
    <dd>More does not bridge an outage.</dd>
    <dt>Hardware decoding: off</dt>
    <dd>Works on each computer, and the times above were measured so.</dd>
    <dt>FFmpeg Options</dt>
    <dd>
      <code>{ffmpegOptions}</code> lets OBS look at half a second of the stream before the first picture, instead of
      several seconds.
    </dd>
    <dt>Restart playback…: off</dt>
    <dd>
      Also clear “Close file when inactive”. The source then goes on in the background while another scene is shown.
    </dd>
  </dl>
)

const Sound = () => (
  <p>
    When a stream stops, OBS may delay <em>all</em> of its sound by up to a second, and keep this delay until it is
    restarted; its log says “Max audio buffering reached”. To keep that from happening, let the relay go on sending:
    choose the last picture or a picture of yours under <a href="/connections">Connections</a>. If your microphone is
    late nevertheless, restart OBS at a good moment.
  </p>
)

const PlayKeys = () => (
  <>
    <p>
      The input has a play key. It plays your stream and can never stream to your relay, so OBS needs no other secret.
      OBS keeps it in the scene collection: someone who gets this file can watch your stream.
    </p>
    <h3>When you have shared a scene collection</h3>
    <ol class="numbered">
      <li>
        Delete the key under <a href="/account/keys">Account → Keys</a>. Players that use it are disconnected within
        seconds.
      </li>
      <li>
        The connection gets a new key. Copy the input again from its kit on the <a href="/relays">relays page</a>, and
        paste it into the source.
      </li>
      <li>Your phone or encoder needs no change.</li>
    </ol>
    <p class="row">
      <a class="link" href="/relays#connect-obs">
        <Icon name="film" />
        Connect OBS
      </a>
      <a class="link" href="/help/scene-switching">
        <Icon name="clapperboard" />
        Scene switching
      </a>
    </p>
  </>
)
