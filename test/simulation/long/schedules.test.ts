/** `npm run test:simulation`: 21,300 schedules from fixed seeds. The unit tests have 500 of them. */
import { expect, test } from 'vitest';

// @ts-expect-error -- plain JavaScript, which `node test/simulation/calibrate.mjs` runs as it is
import { LOOP_IN_A_LOOP } from '../mutants.mjs';
import { startSimulation } from '../processes.js';

const simulation = startSimulation(2);

/** The kinds that are simulated in turn, and how many schedules; with those of the unit tests, 21,300. */
const SHARES = [
  ['key,volume,inside,group,file,directory,tree,write-file', 8_100],
  ['groups,on,around,links,emptied,followed,hang,write-volume', 2_600],
  ['git-sync,cert-manager,alternating,recreated,renamed,mounted,neighbors', 2_200],
  ['polled-key,polled-volume,polled-group,polled-tree,polled-links,leave,regroup', 800],
  ['drawn,behind,cover', 900],
  ['frail,clocks,remote,aliases,numbered,subdirectories,denied-ancestors,denied-file', 1_200],
  ['parcel,parcels,replaced-parcel,mounted-file', 600],
] as const;

/** The work is bounded by its counts, and takes minutes on a machine whose cores are taken. */
const HANG_LIMIT = { timeout: 900_000 };

test.concurrent.each(SHARES)(
  'the invariants hold in schedules of the kinds %s',
  HANG_LIMIT,
  async (kinds, runs) => {
    expect(await simulation.run('--kind', kinds, '--runs', String(runs))).toMatch(
      new RegExp(`^${runs} schedules in .*$`),
    );
  },
);

/** Where people develop: a machine of another platform is a bundle of its own. */
const LAPTOPS = [
  ['darwin', startSimulation(1, 'darwin')],
  ['windows', startSimulation(1, 'win32')],
] as const;

test.concurrent.each(LAPTOPS)(
  'the invariants hold in schedules of the kind %s',
  HANG_LIMIT,
  async (kind, laptop) => {
    expect(await laptop.run('--kind', kind, '--runs', '500')).toMatch(/^500 schedules in .*$/);
  },
);

/** What random schedules have found since all of `npm test` ran without a violation. */
test.concurrent.each([
  ['key', 9_726],
  ['around', 1_226],
  ['around', 861_190_487],
  ['alternating', 335],
  ['alternating', 12_886],
  ['alternating', 51_996],
  ['together', 91_001_018],
  ['together', 630_058_911],
  ['together', 720_116_366],
  ['together', 811_161_289],
  ['frail', 721_000_003],
  ['leave', 800_004_838],
  ['regroup', 723_000_034],
  ['busy-group', 100_058_531],
  ['denied', 100_117_660],
  ['denied', 810_001_019],
  ['mounted-file', 300_055_096],
  ['parcel', 300_099_910],
  ['parcel', 870_167_436],
  ['parcel', 300_131_750],
  ['parcel', 960_000_931],
  ['parcel', 980_003_322],
  ['parcel', 200_236_830],
  ['replaced-parcel', 650_024_690],
  ['drawn', 816_036_423],
  ['renamed', 811_137_667],
  ['parcels', 300_235_797],
  ['parcels', 810_020_780],
  ['busy-directory', 100_170_716],
  ['busy-tree', 520_004_152],
  ['groups', 10_567_682],
  ['groups', 300_229_404],
  ['groups', 819_001_902],
  ['clocks', 822_288_306],
  ['regroup', 823_472_287],
  ['numbered', 841_084_121],
  ['left-links', 825_004_972],
  ['busy-tree', 841_025_862],
  ['busy-tree', 854_114_212],
  ['groups', 843_118_068],
  ['groups', 856_102_962],
  ['frail', 843_230_152],
  ['directory', 843_419_060],
  ['denied', 844_107_552],
  ['aliases', 852_002_437],
  ['alternating', 855_086_005],
  ['denied-file', 851_137_103],
  ['replaced-parcel', 850_067_360],
  ['replaced-parcel', 8_054],
  ['behind', 706],
  ['behind', 862],
  ['recreated', 145],
  ['followed', 488],
  ['followed', 5_134],
  ['emptied', 437],
  ['emptied', 2_057],
  ['inside', 10_422_546],
  ['links', 300_737],
  ['links', 700_001_296],
  ['links', 858_135_197],
  ['drawn', 9_449],
  ['drawn', 200_251_388],
  ['renamed', 1_205_145],
  ['write-file', 52],
  ['around', 78_007_139],
])('the invariants hold in a schedule that has violated one: %s %i', HANG_LIMIT, async (kind, seed) => {
  const args = ['--kind', kind, '--seed', String(seed), '--runs', '1'];
  expect(await simulation.run(...args)).toMatch(/^1 schedules in .*$/);
});

/** The first decisions of a schedule with two publications. */
const ONE_SWAP = '0,0,0,0,0,1';

test.concurrent(
  'the invariants hold wherever others act in a schedule of the kind volume with one swap',
  HANG_LIMIT,
  async () => {
    expect(await simulation.run('--kind', 'volume', '--exhaustive', '--choices', ONE_SWAP)).toMatch(
      /^\d{3,} schedules in .*$/,
    );
  },
);

// At the end, because V8 forgets its optimized code when it counts.
test('work is proportional to the size of each kind of target', HANG_LIMIT, async () => {
  expect(await simulation.run('--kind', 'many', '--each', '0,0,0,0,0,*')).toMatch(/^7 schedules in .*$/);
});

test('a loop within a loop over 2,000 links is noticed', HANG_LIMIT, async () => {
  const [, file, text, replacement] = LOOP_IN_A_LOOP as readonly string[];
  const mutant = { file, text, replacement };
  const printed = await simulation.runMutant(mutant, '--kind', 'many', '--each', '0,0,0,0,0,0,1');
  expect(printed).toMatch(/invariant 9: links: \d+ blocks/);
});
