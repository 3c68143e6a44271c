/** How to connect each app, without the values of a relay, which the relays page shows. */
import type { ComponentChildren } from 'preact'
import { latencyMillis } from '../connection-kit.ts'

export const ConnectSteps = ({ isSignedIn }: { readonly isSignedIn: boolean }) => (
  <>
    <ol class="numbered">
      <li>
        {isSignedIn ? (
          <>
            Start a relay on the <a href="/relays">relays page</a>.
          </>
        ) : (
          <>
            <a href="/sign-up">Create an account</a> or <a href="/login">sign in</a>, and start a relay.
          </>
        )}{' '}
        The <a href="#plugin">plugin for OBS</a> starts one by itself.
      </li>
      <li>When the relay is ready, choose your app under “1. Phone”, and start the stream in it.</li>
      <li>Add the relay to OBS, as “2. OBS” shows.</li>
    </ol>
    <App name="Moblin" platform="iPhone">
      <li>Scan the code under Moblin with the camera of your iPhone.</li>
      <li>Moblin asks before it adds the stream. Agree, and choose the stream in its settings.</li>
      <li>Tap “Go live”. Moblin uses Wi-Fi and the mobile network at the same time.</li>
    </App>
    <App name="IRL Pro" platform="Android">
      <li>Scan the code under IRL Pro and open it with IRL Pro, or copy the link and import it in its settings.</li>
      <li>If your version can’t import it, enter the address, port and stream ID from the BELABOX tab.</li>
      <li>Start the stream.</li>
    </App>
    <App name="Larix Broadcaster" platform="iPhone, Android">
      <li>Scan the code under Larix. It adds a connection.</li>
      <li>Choose this connection and start the stream.</li>
      <li>Larix uses one network at a time, since it supports SRT but not SRTLA.</li>
    </App>
    <App name="BELABOX" platform="encoder">
      <li>Choose a manual relay server on the page of your encoder.</li>
      <li>Enter the address, port and stream ID, and set the SRT latency to {latencyMillis} ms.</li>
      <li>Start the stream.</li>
    </App>
    <App name="OBS" platform="computer">
      <li>Add a media source and clear “Local File”.</li>
      <li>Paste the input from the connection kit into “Input”, and enter the settings that it names.</li>
      <li>Clear “Restart playback when source becomes active”, so that a change of scene doesn’t interrupt it.</li>
      <li>
        OBS can’t see that a stream is gone: see <a href="/help/obs">OBS</a> for what helps.
      </li>
    </App>
  </>
)

interface AppProps {
  readonly name: string
  readonly platform: string
  readonly children: ComponentChildren
}

const App = ({ name, platform, children }: AppProps) => (
  <details class="app">
    <summary>
      <h3>
        {name} <span class="muted">{platform}</span>
      </h3>
    </summary>
    <ol class="numbered">{children}</ol>
  </details>
)
