/** Media Sources of OBS, as a user adds them for a stream. */
import type { Obs } from './obs.ts'

export interface MediaSource {
  readonly name: string
  /** As in `connect.player_url`. */
  readonly url: string
  readonly scene?: string
  /** Of FFmpeg, which reads the stream. */
  readonly ffmpegOptions?: string
}

/** Adds a Media Source to a scene, by default `LIVE`, which plays also while another scene is on air. */
export async function addMediaSource(
  { call }: Pick<Obs, 'call'>,
  { name, url, scene = 'LIVE', ffmpegOptions = '' }: MediaSource,
): Promise<void> {
  await call('CreateInput', {
    sceneName: scene,
    inputName: name,
    inputKind: 'ffmpeg_source',
    inputSettings: {
      is_local_file: false,
      input: url,
      input_format: '',
      ffmpeg_options: ffmpegOptions,
      buffering_mb: 2,
      reconnect_delay_sec: 2,
      hw_decode: false,
      close_when_inactive: false,
      restart_on_activate: false,
      clear_on_media_end: true,
    },
  })
}

export async function removeInput({ call }: Pick<Obs, 'call'>, name: string): Promise<void> {
  await call('RemoveInput', { inputName: name })
}
