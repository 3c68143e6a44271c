/** Icons of the Lucide set as inline SVG, which takes the colour and the size of the text around it. */
import lucide from '@iconify-json/lucide/icons.json' with { type: 'json' }

/** A name of https://lucide.dev/icons, such as `circle-check`. */
export type IconName = keyof typeof lucide.icons

interface IconProps {
  readonly name: IconName
  readonly class?: string
}

/** Hidden from screen readers: the text beside an icon carries its meaning. */
export const Icon = ({ name, class: className }: IconProps) => (
  <svg
    class={className ? `icon ${className}` : 'icon'}
    viewBox="0 0 24 24"
    aria-hidden="true"
    dangerouslySetInnerHTML={{ __html: lucide.icons[name].body }}
  />
)
