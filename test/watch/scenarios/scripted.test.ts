import { defineScenarios } from './define-scenarios.js';

defineScenarios('scripted');
