"""The digits with Keras: a model, its data, and nothing about pausing."""

import keras
from digits_data import SIZE, make

from determined.keras import InputData, TFKerasTrial, TFKerasTrialContext


class DigitsTrial(TFKerasTrial):
    def __init__(self, context: TFKerasTrialContext) -> None:
        self.context = context

    def build_model(self) -> keras.Model:
        model = keras.Sequential(
            [
                keras.Input((SIZE, SIZE)),
                keras.layers.Flatten(),
                keras.layers.Dense(int(self.context.get_hparam("hidden")), activation="relu"),
                keras.layers.Dropout(float(self.context.get_hparam("dropout"))),
                keras.layers.Dense(10, activation="softmax"),
            ]
        )
        optimizer = keras.optimizers.Adam(float(self.context.get_hparam("learning_rate")))
        model.compile(optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
        return model

    def build_training_data_loader(self) -> InputData:
        return make(2000, seed=1)

    def build_validation_data_loader(self) -> InputData:
        return make(500, seed=2)
