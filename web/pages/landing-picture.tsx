/**
 * The pictures of the landing page, as inline SVG in the colours of the page. `landing.css` styles and animates them.
 */

/** A phone whose second network is lost, while its stream goes on over the other two through the relay to OBS. */
export const StreamPicture = () => (
  <svg
    class="picture"
    viewBox="14 66 586 352"
    role="img"
    aria-label="A phone sends one stream over 5G, LTE and Wi-Fi. LTE is lost, and the relay still delivers the whole stream to OBS."
  >
    <Links />
    <Phone />
    <g>
      <circle class="relay-halo" cx="368" cy="215" r="74" />
      <circle class="relay" cx="368" cy="215" r="50" />
      <path class="relay-links" d="M341 198h10c13 0 11 17 22 17M341 215h32M341 232h10c13 0 11-17 22-17" />
      <circle class="relay-stream" cx="386" cy="215" r="9" />
      <text class="label" x="368" y="318">
        Relay
      </text>
    </g>
    <Screen />
    <g class="chip">
      <rect x="196" y="368" width="312" height="46" rx="23" />
      <circle class="chip-light" cx="222" cy="391" r="6" />
      <text x="240" y="398">
        Receiving over 2 of 3 links
      </text>
    </g>
  </svg>
)

const Links = () => (
  <g class="links">
    <path class="link-line" d="M146 158C206 62 262 120 326 184" />
    <path class="link-line lost" d="M158 215H200" />
    <path class="link-line" d="M146 272C206 368 262 310 326 246" />
    <path class="link-line out" d="M424 215H456" />
    <path class="flow" d="M146 158C206 62 262 120 326 184" />
    <path class="flow slow" d="M146 272C206 368 262 310 326 246" />
    <path class="flow wide" d="M424 215H456" />
    <g class="pill">
      <rect x="200" y="88" width="62" height="36" rx="18" />
      <text x="231" y="113">
        5G
      </text>
    </g>
    <g class="pill lost">
      <rect x="196" y="197" width="84" height="36" rx="18" />
      <text x="238" y="222">
        LTE ×
      </text>
    </g>
    <g class="pill">
      <rect x="190" y="306" width="82" height="36" rx="18" />
      <text x="231" y="331">
        Wi-Fi
      </text>
    </g>
  </g>
)

const Phone = () => (
  <g>
    <rect class="device" x="32" y="102" width="114" height="226" rx="22" />
    <rect class="scene" x="42" y="112" width="94" height="206" rx="14" />
    <path class="hills" d="M42 262c18-30 34-42 50-24 12-26 28-30 44-14v80a14 14 0 0 1-14 14H56a14 14 0 0 1-14-14Z" />
    <circle class="sun" cx="112" cy="168" r="14" />
    <rect class="live" x="52" y="124" width="52" height="26" rx="13" />
    <text class="live-text" x="78" y="142">
      LIVE
    </text>
    <text class="label" x="89" y="362">
      Phone
    </text>
  </g>
)

const Screen = () => (
  <g>
    <rect class="device" x="464" y="150" width="122" height="98" rx="12" />
    <rect class="scene" x="472" y="158" width="106" height="82" rx="7" />
    <path class="hills" d="M472 216c20-24 36-32 52-16 14-20 32-20 54-6v39a7 7 0 0 1-7 7h-92a7 7 0 0 1-7-7Z" />
    <circle class="sun" cx="556" cy="180" r="9" />
    <path class="stand" d="M525 248v26M498 276h54" />
    <text class="label" x="525" y="318">
      OBS
    </text>
  </g>
)

/** A button that starts a relay, and the regions to choose from. */
export const StartPicture = () => (
  <svg class="step-picture" viewBox="0 0 320 170" aria-hidden="true">
    <rect class="panel" x="40" y="20" width="240" height="130" rx="14" />
    <rect class="bar" x="60" y="42" width="92" height="10" rx="5" />
    <rect class="field-line" x="60" y="66" width="200" height="28" rx="8" />
    <circle class="good-dot" cx="76" cy="80" r="5" />
    <rect class="bar" x="90" y="76" width="74" height="8" rx="4" />
    <path class="chevron" d="m240 77 5 5 5-5" />
    <rect class="action" x="60" y="106" width="200" height="28" rx="8" />
    <path class="action-sign" d="m154 113 12 7-12 7Z" />
  </svg>
)

/** A phone that scans a QR code. */
export const ConnectPicture = () => (
  <svg class="step-picture" viewBox="0 0 320 170" aria-hidden="true">
    <rect class="panel" x="56" y="30" width="110" height="110" rx="12" />
    <path
      class="code-squares"
      d="M70 44h28v28H70zM124 44h28v28h-28zM70 98h28v28H70zM108 44h8v14h-8zM108 66h8v8h-8zM108 82h16v8h-16zM132 82h20v8h-20zM70 82h14v8H70zM92 82h8v8h-8zM108 98h8v28h-8zM124 98h12v12h-12zM144 98h8v8h-8zM140 114h12v12h-12zM124 118h8v8h-8z"
    />
    <path class="code-holes" d="M77 51h14v14H77zM131 51h14v14h-14zM77 105h14v14H77z" />
    <rect class="device" x="190" y="22" width="76" height="128" rx="14" />
    <path class="viewfinder" d="M206 68v-12h12M250 68v-12h-12M206 92v12h12M250 92v12h-12" />
    <path class="scan" d="M202 80h52" />
  </svg>
)

/** The received bitrate as a line, as the relays page shows it. */
export const LivePicture = () => (
  <svg class="step-picture" viewBox="0 0 320 170" aria-hidden="true">
    <rect class="panel" x="40" y="20" width="240" height="130" rx="14" />
    <circle class="good-dot" cx="64" cy="46" r="6" />
    <rect class="bar" x="80" y="41" width="96" height="10" rx="5" />
    <path class="area" d="M60 130V96l18-8 18 4 18-14 18 6 18 22 18-26 18-8 18 6 18-10 18 4 20-8v66Z" />
    <path class="curve" d="m60 96 18-8 18 4 18-14 18 6 18 22 18-26 18-8 18 6 18-10 18 4 20-8" />
  </svg>
)
