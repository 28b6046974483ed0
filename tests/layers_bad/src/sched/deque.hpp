// Legal: what the violations beside it include.
#pragma once
