/**
 * The bar code of a test picture: white, black, 16 bits with the lowest first, black, white. The bits are the wall
 * clock in frames, so a reader knows the age of the picture.
 */
export const framesPerSecond = 15
const bits = 16
export const columns = bits + 4
const [width, height] = [640, 360]
const columnWidth = width / columns

/** The source of pictures for ffmpeg, in real time. */
export function pictureFilter(): string {
  const column = (index: number, color: string, condition?: string) =>
    `drawbox=x=${index * columnWidth}:w=${columnWidth}:h=${height}:c=${color}:t=fill${condition ? `:enable='${condition}'` : ''}`
  const bit = (k: number) => column(k + 2, 'white', `bitand(floor((t*${framesPerSecond}+0.5)/pow(2\\,${k}))\\,1)`)
  return [
    `color=c=black:s=${width}x${height}:r=${framesPerSecond}`,
    'realtime',
    // The time of each frame is that of the wall clock while the code is drawn, and that of the stream after it.
    'setpts=RTCTIME/1000000/TB',
    column(0, 'white'),
    ...Array.from({ length: bits }, (_, k) => bit(k)),
    column(columns - 1, 'white'),
    `setpts=N/${framesPerSecond}/TB`,
  ].join(',')
}

/** @param levels of the columns, undefined for neither black nor white. @returns undefined without a valid code. */
export function numberOfBits(levels: readonly (0 | 1 | undefined)[]): number | undefined {
  const isFramed = [levels[0], levels[1], levels.at(-2), levels.at(-1)].join() === '1,0,0,1'
  const code = levels.slice(2, -2)
  if (levels.length !== columns || !isFramed || code.includes(undefined)) return undefined
  return code.reduce<number>((sum, bit, k) => sum + (bit ?? 0) * 2 ** k, 0)
}
