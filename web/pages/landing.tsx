/** The landing page: what the service is, how it works, what it costs and where it runs. */
import type { ComponentChildren, VNode } from 'preact'
import type { Prices, RelayTimeTerms } from '../../platform/config/site.ts'
import { Icon, type IconName } from '../icons.tsx'
import type { Capacity } from './capacity.tsx'
import { ConnectPicture, LivePicture, StartPicture, StreamPicture } from './landing-picture.tsx'
import { Plans, Regions } from './landing-plans.tsx'
import { Questions } from './landing-questions.tsx'

interface LandingProps {
  readonly brandName: string
  readonly prices: Prices
  readonly relayTime: RelayTimeTerms
  readonly capacity: Capacity | undefined
}

export const Landing = ({ brandName, prices, relayTime, capacity }: LandingProps) => (
  <>
    <Hero brandName={brandName} />
    <HowItWorks />
    <Features />
    <Software />
    <Plans prices={prices} relayTime={relayTime} />
    <Regions capacity={capacity} />
    <Questions prices={prices} relayTime={relayTime} />
    <section class="section last-call" aria-labelledby="last-call">
      <h2 id="last-call">Ready for your next stream?</h2>
      <p>Create an account, start a relay, scan a code with your phone.</p>
      <a class="button" href="/sign-up">
        Create account
      </a>
    </section>
  </>
)

const Hero = ({ brandName }: { readonly brandName: string }) => (
  <div class="hero">
    <div class="hero-text">
      <p class="eyebrow">Managed relays for SRT and SRTLA</p>
      <h1>Stay live when a network drops</h1>
      <p class="hero-lead">
        {brandName} receives your stream over every network that your phone or encoder has, and delivers it to OBS as
        one. When a network is lost, the stream goes on over the others.
      </p>
      <p class="row">
        <a class="button" href="/sign-up">
          Create account
          <Icon name="arrow-right" />
        </a>
        <a class="button second" href="#how">
          How it works
        </a>
      </p>
      <p class="muted">The free plan needs no card.</p>
    </div>
    <StreamPicture />
  </div>
)

const HowItWorks = () => (
  <section class="section" aria-labelledby="how">
    <div class="section-head">
      <h2 id="how">How it works</h2>
      <p>Three steps from an account to a stream in OBS.</p>
    </div>
    <ol class="steps">
      <Step title="Start a relay" picture={<StartPicture />}>
        Choose a region near you. The plugin for OBS starts it by itself when it loads.
      </Step>
      <Step title="Connect your app" picture={<ConnectPicture />}>
        Scan a code with your phone. The app gets the address, the stream ID and the latency from it.
      </Step>
      <Step title="Go live" picture={<LivePicture />}>
        OBS plays the relay’s stream. You see the bitrate and the number of links as they arrive.
      </Step>
    </ol>
  </section>
)

interface StepProps {
  readonly title: string
  readonly picture: VNode
  readonly children: ComponentChildren
}

const Step = ({ title, picture, children }: StepProps) => (
  <li class="card step">
    {picture}
    <h3>{title}</h3>
    <p class="muted">{children}</p>
  </li>
)

const features: readonly (readonly [icon: IconName, title: string, text: string])[] = [
  [
    'signal',
    'All networks at once',
    'With SRTLA, your encoder spreads the stream over 5G, LTE and Wi-Fi. The relay puts the packets in order again.',
  ],
  [
    'shield-check',
    'The relay waits for you',
    'Lose every network, and the relay keeps its address. Your app reconnects to it without a change in OBS.',
  ],
  ['activity', 'You see what arrives', 'Bitrate, links and the last ten minutes as a chart, updated while you stream.'],
  ['clock', 'A history that explains', 'When each relay started, what it received, and why it ended, in a sentence.'],
  [
    'bell',
    'Notified at once',
    'An email, a webhook or a Discord message when a relay loses contact or your relay time runs low.',
  ],
  [
    'eye-off',
    'Safe on a shared screen',
    'Addresses stay hidden until you show them. Copy them or scan them without showing them.',
  ],
]

const Features = () => (
  <section class="section" aria-labelledby="features">
    <div class="section-head">
      <h2 id="features">Made for streams on the move</h2>
      <p>What a relay does for you while you are busy with your stream.</p>
    </div>
    <ul class="features">
      {features.map(([icon, title, text]) => (
        <li key={title}>
          <span class="feature-icon">
            <Icon name={icon} />
          </span>
          <h3>{title}</h3>
          <p class="muted">{text}</p>
        </li>
      ))}
    </ul>
  </section>
)

const software: readonly (readonly [icon: IconName, name: string, platform: string])[] = [
  ['smartphone', 'Moblin', 'iPhone'],
  ['smartphone', 'IRL Pro', 'Android'],
  ['smartphone', 'Larix', 'iPhone, Android'],
  ['cpu', 'BELABOX', 'encoder'],
  ['monitor', 'OBS', 'computer'],
  ['plug', 'SRT, SRTLA', 'any software'],
]

const Software = () => (
  <section class="section" aria-labelledby="software">
    <div class="section-head">
      <h2 id="software">Works with what you have</h2>
      <p>Codes and values for these apps, and plain addresses for everything else that speaks SRT or SRTLA.</p>
    </div>
    <ul class="software-list">
      {software.map(([icon, name, platform]) => (
        <li key={name}>
          <Icon name={icon} />
          <strong>{name}</strong>
          <span class="muted">{platform}</span>
        </li>
      ))}
    </ul>
  </section>
)
