/** Which slates a relay has: of its present image, in the formats of its streams. */
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { symlinkSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { VideoFormat } from '../../../domain/relay/stream-format.ts'
import { Slates, type SlatesOptions } from '../../../relay-node/slates/slates.ts'
import { eventually, givenFolder } from '../running.ts'
import { givenFfmpeg } from './ffmpeg-stand-in.ts'

const images = ['the first image', 'the second image'].map((text) => Buffer.from(text))
const [first = '', second = ''] = images.map((image) => hash('sha256', image))

const formatOf = (height: number, more: Partial<VideoFormat> = {}): VideoFormat => ({
  codec: 'h264',
  profile: 'high',
  width: 1280,
  height,
  frameRate: 30,
  ...more,
})

async function givenSlates(searchPath: string, more: Partial<SlatesOptions> = {}) {
  const asked: string[] = []
  const server = createServer((request, response) => {
    const digest = request.url?.split('/').at(-1) ?? ''
    asked.push(digest)
    response.end(images.find((image) => hash('sha256', image) === digest))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const logged: string[] = []
  const slates = new Slates({
    apiUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    authSecret: 'secret',
    searchPath,
    log: (_level, message) => void logged.push(message),
    ...more,
  })
  onTestFinished(() => {
    slates.close()
    server.closeAllConnections()
    server.close()
  })
  const find = async (format: VideoFormat) => {
    const picture = await eventually(() => slates.find(format), Boolean)
    return picture?.toString()
  }
  return { slates, asked, logged, find }
}

test('a slate that was prepared is there when it is needed, and is encoded once', async () => {
  const ffmpeg = givenFfmpeg('cat')
  const { slates, find } = await givenSlates(ffmpeg.searchPath)
  slates.prepare(formatOf(720))
  slates.want(first)
  slates.want(first)
  expect(await find(formatOf(720))).toBe('the first image')
  expect(await find(formatOf(720, { frameRate: 60 }))).toBe('the first image')
  expect(ffmpeg.starts()).toHaveLength(1)
})

test('each format has a slate of its own, of which one at a time is encoded, that of the latest format first', async () => {
  // A second process would find the folder of the first one.
  const ffmpeg = givenFfmpeg('mkdir $folder/lock || exit 1; cat; sleep 0.05; rmdir $folder/lock')
  const { slates, find, logged } = await givenSlates(ffmpeg.searchPath)
  for (const height of [360, 480, 720]) slates.prepare(formatOf(height))
  slates.want(first)
  await Promise.all([find(formatOf(360)), find(formatOf(480)), find(formatOf(720))])
  expect(ffmpeg.starts().map((line) => /scale=1280:(\d+)/.exec(line)?.[1])[0]).toBe('720')
  expect(ffmpeg.starts()).toHaveLength(3)
  expect(logged).toEqual([])
})

test('with another image the slates are those of that one, and those of the former are kept for its return', async () => {
  const ffmpeg = givenFfmpeg('cat')
  const { slates, find } = await givenSlates(ffmpeg.searchPath)
  slates.want(first)
  expect(await find(formatOf(720))).toBe('the first image')
  slates.want(second)
  expect(slates.find(formatOf(720))).toBeUndefined()
  expect(await find(formatOf(720))).toBe('the second image')
  slates.want(null)
  expect(slates.find(formatOf(720))).toBeUndefined()
  slates.want(first)
  expect(slates.find(formatOf(720))?.toString()).toBe('the first image')
  expect(ffmpeg.starts()).toHaveLength(2)
})

test('an image that is replaced while it is encoded is given up', async () => {
  const ffmpeg = givenFfmpeg('if grep -q first; then exec sleep 600; else printf second; fi')
  const { slates, find, logged } = await givenSlates(ffmpeg.searchPath)
  slates.prepare(formatOf(720))
  slates.want(first)
  await eventually(() => ffmpeg.starts().length, Boolean)
  slates.want(second)
  expect(await find(formatOf(720))).toBe('second')
  expect(logged).toEqual([])
})

test('of many formats the eight that were used last are kept', async () => {
  const ffmpeg = givenFfmpeg('cat')
  const { slates, find } = await givenSlates(ffmpeg.searchPath)
  slates.want(first)
  for (let n = 0; n < 9; n += 1) {
    await find(formatOf(100 + 2 * n))
    await find(formatOf(100))
  }
  expect(ffmpeg.starts()).toHaveLength(9)
  expect(slates.find(formatOf(102))).toBeUndefined()
})

test('slates of more than 16 MB together are not kept', async () => {
  const ffmpeg = givenFfmpeg('cat > /dev/null; head -c 4000000 /dev/zero')
  const { slates, find } = await givenSlates(ffmpeg.searchPath)
  slates.want(first)
  for (const height of [100, 102, 104, 106, 108]) await find(formatOf(height))
  expect(slates.find(formatOf(100))).toBeUndefined()
  expect(slates.find(formatOf(108))).toHaveLength(4_000_000)
})

test('after a failure no further attempt is made for a while, and other formats have theirs', async () => {
  const ffmpeg = givenFfmpeg('case "$*" in *1280:720*) exit 1;; esac; cat')
  const { slates, find, logged } = await givenSlates(ffmpeg.searchPath)
  slates.want(first)
  slates.find(formatOf(720))
  await eventually(() => logged.length, Boolean)
  expect(slates.find(formatOf(720))).toBeUndefined()
  expect(await find(formatOf(480))).toBe('the first image')
  expect(logged).toEqual(['a slate could not be encoded'])
  expect(ffmpeg.starts()).toHaveLength(2)
})

test('an attempt that failed is repeated after its time, also one that hung', async () => {
  const ffmpeg = givenFfmpeg('exec sleep 600')
  const { slates, find, logged } = await givenSlates(ffmpeg.searchPath, { encodeMillisMax: 200, failureMillis: 50 })
  slates.want(first)
  slates.find(formatOf(720))
  await eventually(() => logged.length, Boolean)
  ffmpeg.change('cat')
  expect(await find(formatOf(720))).toBe('the first image')
})

test('a format without slates starts nothing', async () => {
  const ffmpeg = givenFfmpeg('cat')
  const { slates, find } = await givenSlates(ffmpeg.searchPath)
  slates.want(first)
  for (const format of [formatOf(720, { profile: 'other' }), formatOf(8192, { width: 8192 }), formatOf(721)])
    slates.find(format)
  await find(formatOf(480))
  expect(ffmpeg.starts()).toHaveLength(1)
})

test('where ffmpeg is not installed that is logged once, and nothing is fetched', async () => {
  const { slates, asked, logged } = await givenSlates(givenFolder())
  slates.want(first)
  slates.want(second)
  slates.prepare(formatOf(720))
  expect(slates.find(formatOf(720))).toBeUndefined()
  expect(logged).toEqual(['this relay shows no slates while ffmpeg is not installed'])
  expect(asked).toEqual([])
})

test('an encoder that is installed while the relay runs is found', async () => {
  const ffmpeg = givenFfmpeg('cat')
  const folder = givenFolder()
  const { slates, find, logged } = await givenSlates(folder, { failureMillis: 50 })
  slates.want(first)
  slates.prepare(formatOf(720))
  expect(logged).toHaveLength(1)
  symlinkSync(join(ffmpeg.folder, 'bin', 'ffmpeg'), join(folder, 'ffmpeg'))
  expect(await find(formatOf(720))).toBe('the first image')
  expect(logged).toHaveLength(1)
})

test('after its end a relay encodes nothing', async () => {
  const ffmpeg = givenFfmpeg('cat')
  const { slates, asked } = await givenSlates(ffmpeg.searchPath)
  slates.close()
  slates.want(first)
  expect(slates.find(formatOf(720))).toBeUndefined()
  expect(asked).toEqual([])
})
