import { createTheme, type MantineColorsTuple } from '@mantine/core'

const accent: MantineColorsTuple = [
  '#eef2ff', '#dde5ff', '#bccaff', '#98adff', '#7a92fb', '#5f79f0', '#4a63e0', '#3b52c9', '#3145ab', '#27378a',
] // biome-ignore format: ten shades on a line
const gray: MantineColorsTuple = [
  '#f8f9fb', '#f1f3f6', '#e8ebf0', '#dde1e8', '#c6ccd6', '#687182', '#565e6d', '#434a57', '#2f3540', '#1b2029',
] // biome-ignore format: ten shades on a line
const dark: MantineColorsTuple = [
  '#e6e8ed', '#c0c6d1', '#a0a8b7', '#858e9f', '#3b424f', '#2a303a', '#1b2028', '#13161c', '#0e1116', '#0a0c10',
] // biome-ignore format: ten shades on a line

const red: MantineColorsTuple = [
  '#fdecee',
  '#fad5d9',
  '#f3a8b0',
  '#ee7f8a',
  '#e2566a',
  '#d63d50',
  '#c92a3a',
  '#b8212f',
  '#9c1a27',
  '#7d141f',
]

export const fonts =
  'system-ui, -apple-system, "Segoe UI", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif'
export const mono =
  'ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", "Noto Sans Mono CJK SC", monospace'

export const theme = createTheme({
  primaryColor: 'accent',
  primaryShade: { light: 7, dark: 6 },
  colors: { accent, gray, dark, red },
  black: '#1b2029',
  fontFamily: fonts,
  fontFamilyMonospace: mono,
  fontSizes: { xs: '12px', sm: '13px', md: '14px', lg: '16px', xl: '18px' },
  lineHeights: { xs: '1.5', sm: '1.5', md: '1.5', lg: '1.5', xl: '1.4' },
  defaultRadius: 6,
  headings: {
    fontWeight: '600',
    sizes: { h1: { fontSize: '20px' }, h2: { fontSize: '15px' }, h3: { fontSize: '13px' } },
  },
  respectReducedMotion: true,
  cursorType: 'pointer',
  components: {
    Button: { defaultProps: { size: 'xs', radius: 6 } },
    ActionIcon: { defaultProps: { variant: 'subtle', color: 'gray', size: 'md' } },
    TextInput: { defaultProps: { size: 'xs' } },
    Select: { defaultProps: { size: 'xs' } },
    SegmentedControl: { defaultProps: { size: 'xs' } },
    Tooltip: { defaultProps: { openDelay: 250, withArrow: true, fz: 'xs' } },
    Modal: { defaultProps: { centered: true, radius: 10 }, styles: { title: { fontWeight: 600, fontSize: 16 } } },
    Menu: { defaultProps: { shadow: 'md', radius: 8 } },
    Popover: { defaultProps: { shadow: 'md', radius: 8 } },
  },
})
