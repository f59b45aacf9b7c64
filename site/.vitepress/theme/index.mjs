// Without the fonts of the default theme: text is shown at once, in the reader's own.
import theme from 'vitepress/theme-without-fonts';

import './style.css';

export default theme;
