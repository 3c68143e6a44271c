/** The form that chooses what players see while no stream arrives. It works without scripts. */
import type { VNode } from 'preact'
import { type OnLoss, onLossModes } from '../../domain/relay/on-loss.ts'
import { slateBytesMax, slateSideMax } from '../../domain/relay/slates.ts'
import { modeTexts } from './loss-texts.ts'
import { type Problem, ProblemMessage } from './messages.tsx'

interface OnLossFormProps {
  /** Of the page, which the form is sent to. */
  readonly path: string
  readonly mode: OnLoss
  readonly problem: Problem | undefined
  /** What applies at present. */
  readonly now: VNode
}

export const OnLossForm = ({ path, mode, problem, now }: OnLossFormProps) => (
  <section class="card" aria-labelledby="on-loss">
    <h2 id="on-loss">When your stream drops</h2>
    {now}
    <form class="fields" method="post" action={path} encType="multipart/form-data">
      <Modes mode={mode} problem={problem?.field === 'on_loss' ? problem : undefined} />
      <Picture problem={problem?.field === 'picture' ? problem : undefined} />
      <div>
        <button type="submit">Save</button>
      </div>
    </form>
    <p class="muted">
      Whatever you choose, <a href="/help/scene-switching">scene switchers</a>, the script for OBS and your
      notifications see the stream as lost. A picture is sent for at most 30 minutes.
    </p>
  </section>
)

interface FieldProps {
  readonly problem: Problem | undefined
}

const Modes = ({ mode, problem }: FieldProps & Pick<OnLossFormProps, 'mode'>) => (
  <fieldset class="option-cards" aria-describedby={problem ? 'problem' : undefined}>
    <legend>Players get</legend>
    <ProblemMessage problem={problem} />
    {onLossModes.map((each) => (
      <label key={each}>
        <input type="radio" name="on_loss" value={each} checked={each === mode} required />
        <span>{modeTexts[each].name}</span>
        <span class="muted">{modeTexts[each].description}</span>
      </label>
    ))}
  </fieldset>
)

const megabytes = slateBytesMax / 1024 / 1024

const Picture = ({ problem }: FieldProps) => (
  <div class="field">
    <label for="picture">Upload a picture</label>
    <p class="muted" id="picture-help">
      PNG or JPEG, up to {megabytes} MB and {slateSideMax} × {slateSideMax} pixels. 1920 × 1080 fits most streams.
    </p>
    <ProblemMessage problem={problem} />
    <input
      id="picture"
      name="picture"
      type="file"
      accept="image/png,image/jpeg"
      data-bytes-max={slateBytesMax}
      data-too-large={`Choose a picture of at most ${megabytes} MB.`}
      aria-describedby={problem ? 'problem picture-help' : 'picture-help'}
      {...(problem ? { 'aria-invalid': true, autofocus: true } : {})}
    />
  </div>
)
